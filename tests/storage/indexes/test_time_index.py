"""The time index against a plain list."""

import struct
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import CorruptIndexError
from headwater.storage.indexes.time_index import TimeIndex, TimestampOffset
from headwater.wire.records import NO_TIMESTAMP

PATH = "/data/00000000000000001000.timeindex"
BASE = 1000
START = TimestampOffset(NO_TIMESTAMP, BASE)


def new_index(*, size_max_bytes: int = 10 << 20, data: bytes = b"") -> TimeIndex:
    disk = FaultyDisk(directories=["/data"])
    disk.open(PATH, create=True).write_at(0, data)
    return TimeIndex(HandleCache(disk, 4), PATH, BASE, size_max_bytes)


def _offered(steps: Sequence[tuple[int, int]]) -> list[TimestampOffset]:
    offsets = accumulate(step for step, _ in steps)
    return [
        TimestampOffset(timestamp, BASE + offset)
        for offset, (_, timestamp) in zip(offsets, steps, strict=True)
    ]


#: What a segment offers to its index: offsets rise, timestamps may go back.
offers = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 60)), max_size=25).map(_offered)


def rising(offered: Sequence[TimestampOffset]) -> list[TimestampOffset]:
    """Those that are later than all in front of them."""
    entries: list[TimestampOffset] = []
    for entry in offered:
        if entry.timestamp > (entries[-1].timestamp if entries else NO_TIMESTAMP):
            entries.append(entry)
    return entries


def filled(offered: Sequence[TimestampOffset], *, sealed: bool = False) -> TimeIndex:
    index = new_index()
    for entry in offered:
        index.append_if_later(*entry)
    if sealed:
        index.trim()
    return index


def test_entries_are_eight_bytes_of_timestamp_and_four_of_relative_offset() -> None:
    disk = FaultyDisk(directories=["/data"])
    index = TimeIndex(HandleCache(disk, 4), PATH, BASE, 10 << 20)
    index.append_if_later(1_700_000_000_123, BASE + 42)
    index.write_out()
    assert disk.contents()[PATH] == struct.pack(">qi", 1_700_000_000_123, 42)
    assert index.size_bytes == 12


@given(offers, st.booleans())
def test_only_the_running_maximum_is_kept(offered: list[TimestampOffset], sealed: bool) -> None:
    index = filled(offered, sealed=sealed)
    entries = rising(offered)
    assert index.entries() == entries
    assert index.last_entry == (entries[-1] if entries else START)
    index.sanity_check()


@given(offers, st.lists(st.integers(-2, 62), max_size=20), st.booleans())
def test_lookup_equals_a_search_through_a_list(
    offered: list[TimestampOffset], targets: list[int], sealed: bool
) -> None:
    index = filled(offered, sealed=sealed)
    for target in targets:
        at_or_before = [entry for entry in rising(offered) if entry.timestamp <= target]
        assert index.lookup(target) == (at_or_before[-1] if at_or_before else START)


@given(offers, st.integers(BASE - 1, BASE + 230), st.booleans())
def test_truncation_keeps_entries_in_front_of_the_offset(
    offered: list[TimestampOffset], offset: int, sealed: bool
) -> None:
    index = filled(offered, sealed=sealed)
    index.truncate_to(offset)
    kept = [entry for entry in rising(offered) if entry.offset < offset]
    assert index.entries() == kept
    index.append_if_later(100, BASE + 500)
    assert index.entries() == [*kept, (100, BASE + 500)]


def test_a_place_is_kept_for_the_entry_of_sealing() -> None:
    index = new_index(size_max_bytes=3 * 12 + 5)
    index.append_if_later(1, BASE + 1)
    assert not index.is_full
    index.append_if_later(2, BASE + 2)
    assert index.is_full
    index.append_if_later(3, BASE + 3)
    assert index.size_bytes == 3 * 12


def test_damage_that_shows_without_the_log() -> None:
    torn = struct.pack(">qi", 50, 4) + b"\0"
    with pytest.raises(CorruptIndexError, match="whole number of entries"):
        new_index(data=torn).sanity_check()
    preallocated = struct.pack(">qi", 50, 4) + bytes(24)
    with pytest.raises(CorruptIndexError, match="lies before its first"):
        new_index(data=preallocated).sanity_check()
    foreign = struct.pack(">qi", 50, -4)
    with pytest.raises(CorruptIndexError, match="before the segment's base"):
        new_index(data=foreign).sanity_check()
