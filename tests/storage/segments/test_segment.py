"""One segment: finding batches by offset and time, sparse indexes, rolling, cutting, its files."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.sim.campaigns.logs import NOW_MS, leader_batch, new_disk, sized_batch
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import CachedFile, HandleCache
from headwater.storage.errors import CorruptIndexError
from headwater.storage.log_config import LogConfig
from headwater.storage.producers.open_transactions import CompletedTransaction
from headwater.storage.segments.segment import BatchPosition, LogSegment
from headwater.storage.segments.segment_files import DELETED, SEGMENT_SUFFIXES, segment_path
from headwater.wire.records import (
    DECOMPRESSED_BYTES_MAX,
    Record,
    encode_batch,
    iter_batch_headers,
)
from tests.support.models.hidden_log import delayed_batch


def new_segment(
    base_offset: int = 0,
    *,
    disk: FaultyDisk | None = None,
    config: LogConfig | None = None,
    roll_jitter_ms: int = 0,
) -> LogSegment:
    files = disk or new_disk()
    return LogSegment(
        files,
        HandleCache(files, 8),
        "/data",
        base_offset,
        config or LogConfig(),
        created_ms=NOW_MS,
        roll_jitter_ms=roll_jitter_ms,
    )


def write(segment: LogSegment, batch: bytes) -> BatchPosition:
    headers = [header for _, header in iter_batch_headers(batch)]
    position = segment.size_bytes
    segment.append(batch, headers)
    return BatchPosition(position, len(batch), headers[0].base_offset, headers[-1].last_offset)


#: Per batch: the gap in front of it, its number of records, the length of their values.
shapes = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1, 30)),
        st.integers(1, 4),
        st.integers(0, 200) | st.sampled_from((1500, 4096, 9000)),
    ),
    max_size=25,
)


def fill(segment: LogSegment, batches: list[tuple[int, int, int]]) -> list[BatchPosition]:
    placed, offset = [], segment.next_offset
    for gap, count, length in batches:
        offset += gap
        placed.append(write(segment, leader_batch(offset, *[b"x" * length] * count)))
        offset += count
    return placed


# -- finding an offset ---------------------------------------------------------------------------


@given(shapes, st.sampled_from((0, 100, 1000, 4096)), st.booleans())
def test_find_gives_the_first_batch_that_reaches_the_offset(
    batches: list[tuple[int, int, int]], index_interval_bytes: int, sealed: bool
) -> None:
    segment = new_segment(500, config=LogConfig(index_interval_bytes=index_interval_bytes))
    placed = fill(segment, batches)
    if sealed:
        segment.seal()
    for offset in range(498, segment.next_offset + 2):
        expected = next((each for each in placed if each.last_offset >= offset), None)
        assert segment.find(offset) == expected
        for start in placed[:: len(placed) // 3 + 1]:
            behind = [each for each in placed if each.position >= start.position]
            expected = next((each for each in behind if each.last_offset >= offset), None)
            assert segment.find(offset, start.position) == expected


@given(shapes, st.sampled_from((0, 100, 1000)))
def test_one_index_entry_for_each_interval_of_log(
    batches: list[tuple[int, int, int]], index_interval_bytes: int
) -> None:
    segment = new_segment(config=LogConfig(index_interval_bytes=index_interval_bytes))
    placed = fill(segment, batches)
    expected, since = [], 0
    for each in placed:
        if since > index_interval_bytes:
            expected.append((each.last_offset, each.position))
            since = 0
        since += each.size
    assert segment.offset_index.entries() == expected


def test_the_notes_search_for_offset_170418() -> None:
    """The index holds [3, 348] and [8, 1325], and 170418 is read from position 1325."""
    segment = new_segment(170410, config=LogConfig(index_interval_bytes=340))
    for number, size in enumerate((116, 116, 116, 75, 75, 75, 75, 677, 90, 90)):
        write(segment, sized_batch(170410 + number, size))
    assert segment.offset_index.entries() == [(170413, 348), (170418, 1325)]
    found = segment.find(170418)
    assert found is not None
    assert (found.position, found.size, found.base_offset) == (1325, 90, 170418)


def test_the_notes_search_for_offset_368801() -> None:
    """There is no entry for it, so the scan starts at the one before: [4, 256]."""
    segment = new_segment(368796, config=LogConfig(index_interval_bytes=250))
    for offset, size in ((368796, 128), (368798, 128), (368800, 100), (368801, 90), (368802, 90)):
        write(segment, sized_batch(offset, size))
    assert segment.offset_index.entries() == [(368800, 256)]
    assert segment.offset_index.lookup(368801) == (368800, 256)
    found = segment.find(368801)
    assert found is not None
    assert (found.position, found.base_offset) == (356, 368801)


def test_a_search_starts_at_the_index_entry_and_reads_little() -> None:
    disk = new_disk()
    segment = new_segment(disk=disk, config=LogConfig(index_interval_bytes=4096))
    for number in range(300):
        write(segment, sized_batch(number, 400))
    entry = segment.offset_index.lookup(200)
    assert 0 < entry.position <= 200 * 400
    reads: list[str] = []
    disk.before_operation = lambda operation, path: reads.append(operation + path[-4:])
    found = segment.find(200)
    assert found is not None and found.position == 200 * 400
    assert reads.count("read.log") <= 2


def test_an_offset_among_large_batches_takes_one_read_of_the_log() -> None:
    disk = new_disk()
    segment = new_segment(disk=disk)
    for number in range(20):
        write(segment, sized_batch(number * 3, 10_000))
    reads: list[str] = []
    disk.before_operation = lambda operation, path: reads.append(operation + path[-4:])
    found = segment.find(30)
    assert found is not None and found.position == 10 * 10_000
    assert reads.count("read.log") == 1


# -- finding a time ------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=3), max_size=20),
    st.sampled_from((0, 150, 4096)),
    st.integers(0, 60),
    st.integers(-1, 52),
)
def test_a_timestamp_is_found_as_a_scan_of_all_records_would(
    batches: list[list[int]], index_interval_bytes: int, starting_offset: int, timestamp: int
) -> None:
    segment = new_segment(config=LogConfig(index_interval_bytes=index_interval_bytes))
    records: list[tuple[int, int]] = []
    for timestamps in batches:
        batch = [
            Record(len(records) + number, each, None, b"v")
            for number, each in enumerate(timestamps)
        ]
        write(segment, encode_batch(batch))
        records += [(record.timestamp, record.offset) for record in batch]
    expected = next(
        (each for each in records if each[0] >= timestamp and each[1] >= starting_offset), None
    )
    assert segment.find_timestamp(timestamp, starting_offset, DECOMPRESSED_BYTES_MAX) == expected
    largest = max((each for each, _ in records), default=-1)
    assert segment.latest.timestamp == largest


def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    disk = new_disk()
    segment = new_segment(disk=disk)
    write(segment, leader_batch(0, b"v", timestamp=-1))
    assert segment.largest_timestamp == disk.clock.wall_ms()
    write(segment, leader_batch(1, b"v", timestamp=77))
    assert segment.largest_timestamp == 77


# -- when to roll --------------------------------------------------------------------------------


def test_it_rolls_when_the_size_would_exceed_segment_bytes() -> None:
    segment, config = new_segment(), LogConfig(segment_bytes=1000)
    write(segment, sized_batch(0, 600))
    assert not segment.should_roll(400, 1, NOW_MS, NOW_MS, config)
    assert segment.should_roll(401, 1, NOW_MS, NOW_MS, config)


def test_it_rolls_by_the_time_of_messages_and_not_of_the_clock() -> None:
    segment, config = new_segment(), LogConfig(segment_ms=1000)
    much_later = NOW_MS + 10**9
    assert not segment.should_roll(70, 0, much_later, much_later, config)  # It is empty.
    write(segment, sized_batch(0, 100, timestamp=NOW_MS))
    assert not segment.should_roll(70, 1, NOW_MS + 1000, much_later, config)
    assert segment.should_roll(70, 1, NOW_MS + 1001, NOW_MS, config)


def test_without_message_times_the_clock_decides() -> None:
    segment, config = new_segment(), LogConfig(segment_ms=1000)
    write(segment, sized_batch(0, 100, timestamp=-1))
    assert not segment.should_roll(70, 1, -1, NOW_MS + 1000, config)
    assert segment.should_roll(70, 1, -1, NOW_MS + 1001, config)


def test_jitter_lets_it_roll_earlier() -> None:
    config = LogConfig(segment_ms=1000)
    segment = new_segment(roll_jitter_ms=300)
    write(segment, sized_batch(0, 100, timestamp=NOW_MS))
    assert not segment.should_roll(70, 1, NOW_MS + 700, NOW_MS, config)
    assert segment.should_roll(70, 1, NOW_MS + 701, NOW_MS, config)


def test_the_age_counts_from_the_first_batch_also_after_reopening() -> None:
    disk, config = new_disk(), LogConfig(segment_ms=1000)
    write(new_segment(disk=disk), sized_batch(0, 100, timestamp=NOW_MS))
    reopened = new_segment(disk=disk)
    assert not reopened.should_roll(70, 1, NOW_MS + 1000, NOW_MS, config)
    assert reopened.should_roll(70, 1, NOW_MS + 1001, NOW_MS, config)


def test_it_rolls_when_an_index_is_full() -> None:
    # Room for five entries of the offset index, or three of the time index, one of them reserved.
    config = LogConfig(index_interval_bytes=0, segment_index_bytes=40)
    for step_ms, entry_count in ((0, 5), (1, 2)):
        segment = new_segment(config=config)
        for offset in range(entry_count + 1):
            assert not segment.should_roll(70, offset, NOW_MS, NOW_MS, config)
            write(segment, sized_batch(offset, 100, timestamp=NOW_MS + offset * step_ms))
        assert segment.should_roll(70, entry_count + 1, NOW_MS, NOW_MS, config)
        assert segment.offset_index.is_full == (step_ms == 0)


def test_it_rolls_when_an_offset_is_too_far_from_the_base() -> None:
    segment, config = new_segment(10), LogConfig()
    assert not segment.should_roll(70, 10 + 2**31 - 1, NOW_MS, NOW_MS, config)
    assert segment.should_roll(70, 10 + 2**31, NOW_MS, NOW_MS, config)
    with pytest.raises(InvariantError):
        write(segment, leader_batch(10 + 2**31, b"v"))
    assert segment.size_bytes == 0


# -- cutting, sealing, moving --------------------------------------------------------------------


@given(shapes, st.data())
def test_a_cut_segment_is_as_if_the_rest_had_never_been_written(
    batches: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    config = LogConfig(index_interval_bytes=200)
    segment = new_segment(100, config=config)
    placed = fill(segment, batches)
    if data.draw(st.booleans()):
        segment.seal()
    kept = data.draw(st.integers(0, len(placed)))
    segment.cut(placed[kept].position if kept < len(placed) else segment.size_bytes)
    reference = new_segment(100, config=config)
    fill(reference, batches[:kept])
    assert (segment.size_bytes, segment.next_offset) == (
        reference.size_bytes,
        reference.next_offset,
    )
    assert segment.latest == reference.latest
    assert segment.offset_index.entries() == reference.offset_index.entries()
    write(segment, leader_batch(9000, b"more"))
    found = segment.find(9000)
    assert found is not None and found.position == reference.size_bytes


def test_cutting_forgets_the_aborted_transactions_behind_the_cut() -> None:
    segment = new_segment()
    for offset in range(6):
        write(segment, sized_batch(offset, 100))
    segment.add_aborted(CompletedTransaction(1, 0, 2, True), 3)
    segment.add_aborted(CompletedTransaction(2, 3, 4, True), 5)
    segment.cut(300)
    assert [entry.last_offset for entry in segment.transaction_index] == [2]


def test_sealing_ends_the_time_index_with_the_largest_timestamp() -> None:
    segment = new_segment()
    for offset, timestamp in enumerate((NOW_MS, NOW_MS + 9, NOW_MS + 5)):
        write(segment, leader_batch(offset, b"v", timestamp=timestamp))
    assert segment.time_index.entries() == []
    segment.seal()
    assert segment.time_index.entries() == [(NOW_MS + 9, 1)]


def test_reopening_finds_the_end_and_the_largest_timestamp() -> None:
    disk = new_disk()
    segment = new_segment(50, disk=disk, config=LogConfig(index_interval_bytes=300))
    for number in range(30):
        write(segment, sized_batch(50 + number, 100, timestamp=NOW_MS + number * 7 % 40))
    reopened = new_segment(50, disk=disk)
    reopened.find_end()
    assert (reopened.next_offset, reopened.size_bytes) == (80, 3000)
    assert reopened.latest == segment.latest


def test_an_index_that_points_behind_the_log_is_recognised() -> None:
    disk = new_disk()
    segment = new_segment(disk=disk)
    for offset in range(3):
        write(segment, sized_batch(offset, 100))
    new_segment(disk=disk).sanity_check()
    segment.offset_index.append(3, 301)
    segment.finish_indexes()
    with pytest.raises(CorruptIndexError, match="outside"):
        new_segment(disk=disk).sanity_check()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_missing_is_recognised(suffix: str) -> None:
    disk = new_disk()
    write(new_segment(disk=disk), sized_batch(0, 100))
    disk.remove(f"/data/{0:020}{suffix}")
    with pytest.raises(CorruptIndexError, match="lacks an index"):
        new_segment(disk=disk).sanity_check()


@pytest.mark.parametrize("batch_bytes", [16_300, 300_000])
def test_room_that_was_reserved_for_large_appends_is_given_back(
    tmp_path: Path, batch_bytes: int
) -> None:
    files = DiskFiles()
    segment = LogSegment(
        files, HandleCache(files, 8), str(tmp_path), 0, LogConfig(), created_ms=NOW_MS
    )
    reserve = segment.log.reserve
    with patch.object(CachedFile, "reserve", side_effect=reserve) as reserved:
        for offset in range(3):
            write(segment, sized_batch(offset, batch_bytes))
    # Ahead for the second, and as much again when it was used up.
    assert [each.args for each in reserved.call_args_list] == [
        (2 * batch_bytes,),
        (6 * batch_bytes,),
    ]
    assert segment.log.size() == 3 * batch_bytes  # Whatever the disk has set aside.
    segment.seal()
    segment.sync()
    taken_bytes = os.stat(segment.log.path).st_blocks * 512
    segment.close()
    assert taken_bytes < 3 * batch_bytes + (64 << 10)


def test_all_files_move_together_and_stay_readable() -> None:
    disk = new_disk()
    segment = new_segment(disk=disk, config=LogConfig(index_interval_bytes=0))
    for offset in range(3):
        write(segment, sized_batch(offset, 100))
    segment.add_aborted(CompletedTransaction(1, 0, 2, True), 3)
    write(segment, b"\0" * 7 + b"\x03" + delayed_batch(b"hidden")[8:])
    segment.seal()
    region = segment.region(100, 100)
    segment.move_to_stage(DELETED)
    expected = [segment_path("", 0, suffix, DELETED)[1:] for suffix in SEGMENT_SUFFIXES]
    assert disk.list_dir("/data") == sorted(expected)
    assert region.read() == sized_batch(1, 100)
    assert segment.find(1) is not None
    segment.remove_files()
    assert disk.list_dir("/data") == []


# -- damage --------------------------------------------------------------------------------------


def test_an_index_whose_last_entry_stands_at_the_end_of_the_log_is_recognised() -> None:
    """As when a clean log lost exactly its last batch: the entry's batch is not there."""
    disk = new_disk()
    segment = new_segment(disk=disk, config=LogConfig(index_interval_bytes=0))
    for offset in range(3):
        write(segment, sized_batch(offset, 100))
    segment.finish_indexes()
    segment.log.truncate(200)
    with pytest.raises(CorruptIndexError):
        new_segment(disk=disk).sanity_check()
