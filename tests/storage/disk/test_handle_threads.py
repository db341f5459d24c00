"""Handles used by several threads while the cache takes descriptors away."""

import os
import threading
from pathlib import Path
from random import Random

import pytest

from headwater.storage.disk.disk_files import DiskFile
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache


class StoppedInSync(DiskFiles):
    """A disk on which a sync stays in the middle of the call until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.in_sync = threading.Event()
        self.may_return = threading.Event()
        self.synced_descriptor = -1

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        disk = self

        class StoppedFile(DiskFile):
            def sync(self) -> None:
                disk.synced_descriptor = self.fileno()
                disk.in_sync.set()
                disk.may_return.wait()
                super().sync()

        opened = super().open(path, create=create)
        return StoppedFile(path, os.dup(opened.fileno()))


def test_a_descriptor_is_not_closed_under_a_sync_in_another_thread(tmp_path: Path) -> None:
    files = StoppedInSync()
    cache = HandleCache(files, capacity=1)
    file = cache.open(str(tmp_path / "f"), create=True)
    thread = threading.Thread(target=file.sync)
    thread.start()
    try:
        files.in_sync.wait()
        other = cache.open(str(tmp_path / "other"), create=True)
        other.write_at(0, b"x")
        assert not file.is_open
        assert os.fstat(files.synced_descriptor).st_size == 0
    finally:
        files.may_return.set()
        thread.join()
    del thread
    with pytest.raises(OSError):
        os.fstat(files.synced_descriptor)


def test_threads_share_the_cache_without_mixing_files_up(tmp_path: Path) -> None:
    cache = HandleCache(DiskFiles(), capacity=3)
    handles = [cache.open(str(tmp_path / str(number)), create=True) for number in range(12)]
    failures: list[str] = []

    def work(seed: int) -> None:
        rng = Random(seed)
        for _ in range(1_000):
            number = rng.randrange(len(handles))
            handle = handles[number]
            try:
                handle.write_at(0, b"%03d" % number)
                if (content := handle.read_at(0, 3)) != b"%03d" % number:
                    failures.append(f"{number} holds {content!r}")
            except OSError as error:
                failures.append(str(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert cache.open_count <= 3
