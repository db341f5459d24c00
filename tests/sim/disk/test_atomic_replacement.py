"""A checker for atomic replacement of a file, and bugs that it must find."""

import os
from collections.abc import Callable
from random import Random

import pytest

from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.disk.files import FileSystem, write_atomically
from tests.support.tiers import rounds

Writer = Callable[[FileSystem, str, bytes], None]


def find_violation(replace: Writer, seeds: range) -> str | None:
    """Cut the power before each change of two replacements; say what is wrong afterwards.

    Then replace once more on what was found, so that leftovers get their chance to do harm.
    """
    versions = [b"first" * 300, b"second" * 300, b"third" * 300]
    cut_at, finished = 0, False
    while not finished:
        disk = FaultyDisk(directories=["/d"])
        write_atomically(disk, "/d/f", versions[0])
        disk.before_operation = PowerCut(at=cut_at)
        done = 0
        try:
            for version in versions[1:]:
                replace(disk, "/d/f", version)
                done += 1
            finished = True
        except SimulatedCrash:
            pass
        allowed = versions[done : done + 2]
        for seed in seeds:
            found = disk.crash(Random(seed))
            if found.contents().get("/d/f") not in allowed:
                return f"seed {seed}, power cut before change {cut_at}: a mix, or an old version"
            replace(found, "/d/f", b"last")
            if found.contents()["/d/f"] != b"last":
                return f"seed {seed}, power cut before change {cut_at}: it spoils the next one"
        cut_at += 1
    return None


def without_file_sync(files: FileSystem, path: str, data: bytes) -> None:
    file = files.open(path + ".tmp", create=True)
    file.truncate(0)
    file.write_at(0, data)
    files.rename(path + ".tmp", path)
    files.sync_dir(os.path.dirname(path))


def without_directory_sync(files: FileSystem, path: str, data: bytes) -> None:
    file = files.open(path + ".tmp", create=True)
    file.truncate(0)
    file.write_at(0, data)
    file.sync()
    files.rename(path + ".tmp", path)


def in_place(files: FileSystem, path: str, data: bytes) -> None:
    file = files.open(path)
    file.write_at(0, data)
    file.truncate(len(data))
    file.sync()


def without_emptying(files: FileSystem, path: str, data: bytes) -> None:
    """Takes the temporary file to be empty, which one left by a power loss is not."""
    file = files.open(path + ".tmp", create=True)
    file.write_at(0, data)
    file.sync()
    files.rename(path + ".tmp", path)
    files.sync_dir(os.path.dirname(path))


def test_write_atomically_never_leaves_a_mix() -> None:
    assert find_violation(write_atomically, range(rounds(300, 3_000))) is None


@pytest.mark.parametrize(
    "planted", [without_file_sync, without_directory_sync, in_place, without_emptying]
)
def test_planted_bugs_are_found(planted: Writer) -> None:
    assert find_violation(planted, range(50)) is not None
