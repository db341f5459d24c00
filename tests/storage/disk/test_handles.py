"""The bound on descriptors, and that nobody notices it but by time."""

import gc
import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import DiskFiles, FileSystem, read_bytes
from headwater.storage.disk.handles import CachedFile, HandleCache


def descriptor_count() -> int:
    return len(os.listdir("/proc/self/fd"))


def open_count_of(disk: FaultyDisk, path: str) -> int:
    return sum(1 for operation in disk.operations if operation in (("open", path), ("map", path)))


def test_many_files_and_mappings_within_a_few_descriptors(tmp_path: Path) -> None:
    gc.collect()
    before, highest = descriptor_count(), 0
    cache = HandleCache(DiskFiles(), capacity=100)
    handles = [cache.open(str(tmp_path / str(number)), create=True) for number in range(5_000)]
    for number, handle in enumerate(handles):
        handle.write_at(0, b"%d" % number)
        if number % 100 == 0:
            highest = max(highest, descriptor_count())
    mappings = [cache.map(handle.path) for handle in handles]
    rng = Random(1)
    for step in range(10_000):
        number = rng.randrange(len(handles))
        content = handles[number].read_at(0, 10) if step % 2 else bytes(mappings[number].view)
        assert content == b"%d" % number
        assert cache.open_count <= 100
        if step % 100 == 0:
            highest = max(highest, descriptor_count())
    # One more while listing the directory of descriptors itself.
    assert 90 < highest - before <= 101
    for handle in handles:
        handle.close()
    for mapping in mappings:
        mapping.close()
    assert cache.open_count == 0
    assert descriptor_count() == before


def test_what_is_used_between_openings_stays_open() -> None:
    disk = FaultyDisk()
    cache = HandleCache(disk, capacity=3)
    hot = cache.open("/hot", create=True)
    for number in range(50):
        hot.write_at(number, b"x")
        cache.open(f"/{number}", create=True)
    assert hot.is_open
    assert open_count_of(disk, "/hot") == 0


def test_an_idle_handle_goes_first() -> None:
    disk = FaultyDisk()
    cache = HandleCache(disk, capacity=3)
    first, idle, third = (cache.open(f"/{name}", create=True) for name in "abc")
    first.size()
    third.size()
    cache.open("/d", create=True)
    assert [first.is_open, idle.is_open, third.is_open] == [True, False, True]


def test_a_mapping_takes_no_descriptor_before_it_is_looked_at() -> None:
    disk = FaultyDisk()
    cache = HandleCache(disk, capacity=3)
    cache.open("/f", create=True).write_at(0, b"abc")
    mapping = cache.map("/f")
    assert not mapping.is_open
    assert bytes(mapping.view) == b"abc" and mapping.is_open
    mapping.close()
    assert not mapping.is_open


def evict(cache: HandleCache, *handles: CachedFile) -> None:
    """Open others until these are closed."""
    for number in range(2 * cache.capacity):
        cache.open(f"{handles[0].path}-other-{number}", create=True)
    assert not any(handle.is_open for handle in handles)


def test_moved_to_is_followed_whether_open_or_not() -> None:
    disk = FaultyDisk()
    cache = HandleCache(disk, capacity=2)
    file = cache.open("/a", create=True)
    file.write_at(0, b"abc")
    mapping = cache.map("/a")
    disk.rename("/a", "/b")
    file.moved_to("/b")
    mapping.moved_to("/b")
    assert file.path == mapping.path == "/b"
    assert file.read_at(0, 3) == bytes(mapping.view) == b"abc"
    with pytest.raises(OSError) as caught:
        file.truncate(-1)
    assert caught.value.filename == "/b"
    evict(cache, file)
    disk.rename("/b", "/c")
    file.moved_to("/c")
    mapping.moved_to("/c")
    assert file.read_at(0, 3) == bytes(mapping.view) == b"abc"


def test_reopening_what_is_gone_is_an_error_of_the_system() -> None:
    disk = FaultyDisk()
    cache = HandleCache(disk, capacity=2)
    file = cache.open("/a", create=True)
    evict(cache, file)
    disk.remove("/a")
    with pytest.raises(FileNotFoundError):
        file.read_at(0, 1)
    with pytest.raises(FileNotFoundError):
        file.pin()
    assert cache.open_count <= 2
    # Only opening with `create` creates: a use never brings an empty file back.
    assert not disk.exists("/a")


def test_sync_after_eviction_covers_what_was_written_before() -> None:
    disk = FaultyDisk()
    cache = HandleCache(disk, capacity=2)
    file = cache.open("/a", create=True)
    disk.sync_dir("/")
    file.write_at(0, b"precious")
    evict(cache, file)
    file.sync()
    for seed in range(20):
        assert read_bytes(disk.crash(Random(seed)), "/a") == b"precious"


def test_pinned_handles_stay_open_and_may_exceed_the_bound(tmp_path: Path) -> None:
    cache = HandleCache(DiskFiles(), capacity=2)
    pinned = [cache.open(str(tmp_path / str(number)), create=True) for number in range(5)]
    for handle in pinned:
        handle.pin()
        handle.pin()
    numbers = [handle.fileno() for handle in pinned]
    assert cache.open_count == 5
    other = cache.open(str(tmp_path / "other"), create=True)
    other.write_at(0, b"x")
    for handle in pinned:
        handle.unpin()
    assert [handle.fileno() for handle in pinned] == numbers
    for handle in pinned:
        handle.unpin()
    assert cache.open_count == 2
    with pytest.raises(InvariantError):
        pinned[0].unpin()


def test_closing_a_pinned_handle_waits_for_the_last_pin(tmp_path: Path) -> None:
    cache = HandleCache(DiskFiles(), capacity=2)
    file = cache.open(str(tmp_path / "f"), create=True)
    file.write_at(0, b"abc")
    file.pin()
    number = file.fileno()
    file.close()
    os.unlink(tmp_path / "f")
    assert os.pread(number, 3, 0) == b"abc"
    file.unpin()
    assert cache.open_count == 0
    with pytest.raises(OSError):
        os.fstat(number)
    with pytest.raises(OSError):
        file.read_at(0, 1)


def test_a_view_outlives_the_eviction_of_its_mapping(tmp_path: Path) -> None:
    cache = HandleCache(DiskFiles(), capacity=1)
    (tmp_path / "f").write_bytes(b"abc" * 1000)
    mapping = cache.map(str(tmp_path / "f"))
    part = mapping.view[3:6]
    cache.open(str(tmp_path / "other"), create=True)
    assert not mapping.is_open
    assert bytes(part) == b"abc"


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(InvariantError):
        HandleCache(FaultyDisk(), capacity=0)


@given(
    capacity=st.integers(1, 4),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("write", "read", "view", "pin", "unpin", "close", "move", "sync")),
            st.integers(0, 5),
        ),
        max_size=80,
    ),
)
def test_any_use_gives_what_plain_files_give(capacity: int, steps: list[tuple[str, int]]) -> None:
    files: FileSystem = FaultyDisk()
    cache = HandleCache(files, capacity)
    handles = [cache.open(f"/{number}", create=True) for number in range(6)]
    mappings = [cache.map(f"/{number}") for number in range(6)]
    contents = [b""] * 6
    pins = [0] * 6
    for step, (operation, number) in enumerate(steps):
        handle, mapping = handles[number], mappings[number]
        if operation == "write":
            handle.write_at(len(contents[number]), b"%d," % step)
            contents[number] += b"%d," % step
            mapping.close()
            mappings[number] = cache.map(handle.path)
        elif operation == "read":
            assert handle.read_at(0, 10_000) == contents[number]
        elif operation == "view":
            assert bytes(mapping.view) == contents[number]
        elif operation == "pin":
            handle.pin()
            pins[number] += 1
        elif operation == "unpin" and pins[number]:
            handle.unpin()
            pins[number] -= 1
        elif operation == "close" and not pins[number]:
            handle.close()
            handles[number] = cache.open(handle.path)
        elif operation == "move":
            path = f"/{number}-{step}"
            files.rename(handle.path, path)
            handle.moved_to(path)
            mapping.moved_to(path)
        elif operation == "sync":
            handle.sync()
        assert all(handle.is_open for handle, pinned in zip(handles, pins, strict=True) if pinned)
        pinned_count = sum(1 for pinned in pins if pinned)
        assert cache.open_count <= max(capacity, pinned_count + 1)
        open_states = [each.is_open for each in handles] + [each.is_open for each in mappings]
        assert cache.open_count == sum(open_states)
