"""The offset index against a plain list, and against the notes' example."""

import random
import struct
import tracemalloc
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import CorruptIndexError
from headwater.storage.indexes import index_file
from headwater.storage.indexes.offset_index import OffsetIndex, OffsetPosition

PATH = "/data/00000000000000001000.index"
BASE = 1000

#: (relative offset, position) pairs, both rising.
entry_lists = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9000)), max_size=20).map(
    lambda steps: _sums(steps)
)


def _sums(steps: Sequence[tuple[int, int]]) -> list[OffsetPosition]:
    offsets = accumulate(offset for offset, _ in steps)
    positions = accumulate(position for _, position in steps)
    return [
        OffsetPosition(BASE + offset, position)
        for offset, position in zip(offsets, positions, strict=True)
    ]


def new_index(
    entries: Sequence[OffsetPosition] = (), *, size_max_bytes: int = 10 << 20
) -> OffsetIndex:
    disk = FaultyDisk(directories=["/data"])
    index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, size_max_bytes)
    for entry in entries:
        index.append(*entry)
    return index


def index_of_bytes(data: bytes, base_offset: int = BASE) -> OffsetIndex:
    disk = FaultyDisk(directories=["/data"])
    disk.open(PATH, create=True).write_at(0, data)
    return OffsetIndex(HandleCache(disk, 4), PATH, base_offset, 10 << 20)


def floor(entries: Sequence[OffsetPosition], offset: int) -> OffsetPosition:
    """What the notes ask for: the largest indexed offset that is not beyond the one wanted."""
    return max(
        (entry for entry in entries if entry.offset <= offset), default=OffsetPosition(BASE, 0)
    )


def test_the_bytes_of_the_notes_example() -> None:
    data = bytes.fromhex(
        "0000 0006 0000 009c 0000 000e 0000 01cb 0000 0016 0000 02fa"
        "0000 001a 0000 03b0 0000 001f 0000 0475"
    )
    index = index_of_bytes(data, base_offset=0)
    assert index.entries() == [(6, 156), (14, 459), (22, 762), (26, 944), (31, 1141)]
    assert index.lookup(26) == (26, 944)
    assert index.lookup(25) == (22, 762)
    assert index.lookup(5) == (0, 0)
    index.sanity_check()


def test_entries_are_relative_offset_and_position_in_four_bytes_each() -> None:
    disk = FaultyDisk(directories=["/data"])
    index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
    index.append(BASE + 7, 4711)
    index.append(BASE + 2**31 - 1, 2**31 - 1)
    index.write_out()
    assert disk.contents()[PATH] == struct.pack(">iiii", 7, 4711, 2**31 - 1, 2**31 - 1)


#: How many entries a search looks at together, and how many wait to be written; a real index has
#: more than a test wants to make.
block_sizes = st.sampled_from((1, 3, 512))
waiting_counts = st.sampled_from((1, 2, 7, 64))


@given(
    entry_lists,
    st.lists(st.integers(BASE - 5, BASE + 1100), max_size=20),
    block_sizes,
    waiting_counts,
)
def test_lookup_equals_a_search_through_a_list_also_while_the_index_grows(
    entries: list[OffsetPosition], targets: list[int], block_entries: int, waiting_max: int
) -> None:
    with (
        patch.object(index_file, "BLOCK_ENTRIES", block_entries),
        patch.object(index_file, "WAITING_ENTRIES_MAX", waiting_max),
    ):
        index = new_index()
        for number, entry in enumerate(entries):
            index.append(*entry)
            for target in targets[::3]:
                assert index.lookup(target) == floor(entries[: number + 1], target)
        assert index.entries() == entries
        for target in [*targets, *(entry.offset for entry in entries)]:
            assert index.lookup(target) == floor(entries, target)


@given(entry_lists, st.integers(0, 200_000), block_sizes, waiting_counts)
def test_truncation_keeps_what_stands_in_front_of_the_position(
    entries: list[OffsetPosition], position: int, block_entries: int, waiting_max: int
) -> None:
    with (
        patch.object(index_file, "BLOCK_ENTRIES", block_entries),
        patch.object(index_file, "WAITING_ENTRIES_MAX", waiting_max),
    ):
        index = new_index(entries)
        index.lookup(BASE)
        index.truncate_to_position(position)
        kept = [entry for entry in entries if entry.position < position]
        assert index.entries() == kept
        assert index.last_entry == floor(kept, BASE + 2**31)
        index.append(BASE + 5000, 500_000)
        index.append(BASE + 6000, 600_000)
        assert index.entries() == [*kept, (BASE + 5000, 500_000), (BASE + 6000, 600_000)]
        assert index.lookup(BASE + 5999) == (BASE + 5000, 500_000)


@given(entry_lists, st.integers(0, 200_000))
def test_offset_behind_is_that_of_the_first_entry_from_a_position_on(
    entries: list[OffsetPosition], position: int
) -> None:
    expected = next((entry.offset for entry in entries if entry.position >= position), None)
    assert new_index(entries).offset_behind(position) == expected


@given(entry_lists, st.integers(-10, 200_000))
def test_position_before_is_that_of_the_last_entry_up_to_a_position(
    entries: list[OffsetPosition], position: int
) -> None:
    expected = max((e.position for e in entries if e.position <= position), default=0)
    assert new_index(entries).position_before(position) == expected


def test_what_was_preallocated_is_trimmed() -> None:
    disk = FaultyDisk(directories=["/data"])
    index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
    for number in range(1, 10):
        index.append(BASE + number * 10, number * 100)
    disk.open(PATH).truncate(4096)
    index.trim()
    assert disk.size(PATH) == 9 * 8
    assert index.lookup(BASE + 55) == (BASE + 50, 500)


@given(entry_lists, waiting_counts, st.integers(0, 200_000))
def test_what_waits_is_in_the_file_when_it_is_written_out(
    entries: list[OffsetPosition], waiting_max: int, position: int
) -> None:
    disk = FaultyDisk(directories=["/data"])
    with patch.object(index_file, "WAITING_ENTRIES_MAX", waiting_max):
        index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
        for entry in entries:
            index.append(*entry)
            # All but the newest are in the file already.
            assert index.entry_count * 8 - disk.size(PATH) <= waiting_max * 8
        index.truncate_to_position(position)
        index.write_out()
        kept = [entry for entry in entries if entry.position < position]
        assert OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20).entries() == kept


def test_entries_that_cannot_be_written_out_are_not_lost() -> None:
    disk = FaultyDisk(directories=["/data"])
    with patch.object(index_file, "WAITING_ENTRIES_MAX", 2):
        index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
    entries = [OffsetPosition(BASE + number, number * 10) for number in range(1, 6)]
    for entry in entries[:2]:
        index.append(*entry)
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(OSError, match="No space left"):
        index.append(*entries[2])
    assert index.entries() == entries[:2]
    assert index.lookup(BASE + 2) == entries[1]
    disk.capacity_bytes = None
    for entry in entries[2:]:
        index.append(*entry)
    index.write_out()
    assert OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20).entries() == entries


@pytest.mark.parametrize("seed", range(20))
def test_what_a_failed_writing_left_behind_is_no_entry(seed: int) -> None:
    disk = FaultyDisk(seed, directories=["/data"])
    index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
    for number in range(1, 6):
        index.append(BASE + number, number * 10)
    disk.faults = [Fault({"write"}, torn=True, hit_count_max=1)]
    with pytest.raises(OSError):
        index.write_out()
    index.truncate_to_position(25)
    index.append(BASE + 9, 90)
    index.write_out()
    expected = [(BASE + 1, 10), (BASE + 2, 20), (BASE + 9, 90)]
    assert index.entries() == expected
    assert OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20).entries() == expected


def test_a_long_index_is_searched_through_a_mapping() -> None:
    disk = FaultyDisk(directories=["/data"])
    index = OffsetIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
    for number in range(1, 1500):
        index.append(BASE + number * 10, number * 100)
    index.lookup(BASE + 15)
    index.append(BASE + 20_000, 200_000)
    disk.operations.clear()
    assert index.lookup(BASE + 55) == (BASE + 50, 500)
    operations = [operation for operation, _ in disk.operations]
    assert operations.count("read") <= 2  # The entry behind the mapping, and the one found.


def test_offsets_must_rise() -> None:
    index = new_index([OffsetPosition(BASE + 5, 50)])
    with pytest.raises(InvariantError):
        index.append(BASE + 5, 60)
    assert index.entry_count == 1


def test_it_is_full_at_its_largest_number_of_whole_entries() -> None:
    index = new_index(size_max_bytes=20)
    index.append(BASE + 1, 10)
    assert not index.is_full
    index.append(BASE + 2, 20)
    assert index.is_full


def test_a_cleared_index_starts_again() -> None:
    index = new_index([OffsetPosition(BASE + n, n) for n in range(1, 9)])
    index.clear()
    assert (index.entries(), index.size_bytes, index.lookup(BASE + 9)) == ([], 0, (BASE, 0))
    index.append(BASE + 3, 7)
    assert index.entries() == [(BASE + 3, 7)]


def test_part_of_an_entry_is_no_entry_but_a_sign_of_damage() -> None:
    index = index_of_bytes(struct.pack(">iii", 4, 40, 9))
    assert index.entries() == [(BASE + 4, 40)]
    with pytest.raises(CorruptIndexError, match=r"index: its size is not a whole number"):
        index.sanity_check()


def test_a_preallocated_tail_that_was_never_trimmed_is_recognised() -> None:
    index = index_of_bytes(struct.pack(">iiii", 4, 40, 9, 90) + bytes(64))
    with pytest.raises(CorruptIndexError, match="not beyond the segment's base"):
        index.sanity_check()


def test_an_index_of_negative_relative_offsets_is_recognised() -> None:
    with pytest.raises(CorruptIndexError):
        index_of_bytes(struct.pack(">ii", -4, 40)).sanity_check()


def test_memory_does_not_grow_with_the_index(tmp_path: Path) -> None:
    entry_count = 200_000
    path = f"{tmp_path}/index"
    pairs = (number for pair in range(1, entry_count + 1) for number in (pair * 2, pair * 100))
    Path(path).write_bytes(struct.pack(f">{2 * entry_count}i", *pairs))
    rng = random.Random(1)
    tracemalloc.start()
    try:
        index = OffsetIndex(HandleCache(DiskFiles(), 4), path, 0, 10 << 20)
        for _ in range(100):
            number = rng.randrange(1, entry_count)
            assert index.lookup(number * 2 + 1) == (number * 2, number * 100)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        index.close()
    assert peak_bytes < 256 << 10  # The entries themselves are 1,600,000 bytes.
