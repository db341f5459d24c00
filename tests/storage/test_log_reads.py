"""Reading a log by offset, by byte budget and by time, against a model of all its batches."""

from bisect import bisect_right
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    leader_batch,
    new_disk,
    open_log,
    read_records,
    sized_batch,
)
from headwater.storage.disk.files import FileRegion
from headwater.storage.errors import OffsetOutOfRangeError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import apply_retention, delete_records_before
from headwater.wire.records import Record, encode_batch, iter_batch_headers, patch_batch


@dataclass
class Model:
    """Batches as (first offset, last offset, bytes), and the segments they are in."""

    log: PartitionLog
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)

    def append(self, gap: int, count: int, size: int) -> None:
        first = self.log.log_end_offset + gap
        batch = leader_batch(first, *[b"x" * size] * count)
        self.log.append_as_follower(batch, now_ms=NOW_MS)
        self.batches.append((first, first + count - 1, batch))

    def segment_number(self, offset: int) -> int:
        return bisect_right([segment.base_offset for segment in self.log.segments], offset) - 1

    def read(self, offset: int, upper: int, max_bytes: int, min_one_batch: bool) -> bytes:
        """Whole batches of one segment below `upper`, cut at the budget, but not the first one."""
        reached = [batch for batch in self.batches if batch[1] >= offset]
        if not reached or offset >= upper:
            return b""
        number = self.segment_number(reached[0][0])
        data = [
            batch
            for first, last, batch in reached
            if last < upper and self.segment_number(first) == number
        ]
        if not data:
            return b""
        if len(data[0]) > max_bytes and not min_one_batch:
            return b""
        budget = max(max_bytes, len(data[0]))
        return b"".join(data)[:budget]


batch_shapes = st.lists(
    st.tuples(st.sampled_from((0, 0, 0, 5)), st.integers(1, 3), st.integers(0, 150)),
    min_size=1,
    max_size=20,
)


def filled(shapes: list[tuple[int, int, int]]) -> Model:
    config = LogConfig(segment_bytes=900, index_interval_bytes=200)
    model = Model(open_log(new_disk(), DIRECTORY, config))
    for shape in shapes:
        model.append(*shape)
    return model


@given(batch_shapes, st.data())
def test_a_read_gives_whole_batches_within_its_bounds(
    shapes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    model = filled(shapes)
    log = model.log
    for _ in range(5):
        offset = data.draw(st.integers(0, log.log_end_offset))
        upper = data.draw(st.integers(0, log.log_end_offset + 3))
        max_bytes = data.draw(st.integers(0, 1500))
        min_one_batch = data.draw(st.booleans())
        found = log.read(offset, max_bytes, upper_offset=upper, min_one_batch=min_one_batch)
        expected = model.read(offset, upper, max_bytes, min_one_batch)
        assert (found.region.read() if found.region else b"") == expected
        assert found.size == len(expected)
        assert found.upper_offset <= min(upper, log.log_end_offset)
        # The bound holds for every batch of which the region has even a part.
        position = 0
        for first, last, batch in model.batches:
            if expected[position : position + len(batch)] and last >= offset:
                if position < len(expected):
                    assert last < found.upper_offset or position + len(batch) > len(expected)
                    assert first < found.upper_offset
                position += len(batch)


def test_a_budget_smaller_than_a_batch() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for offset in range(3):
        log.append_as_follower(sized_batch(offset, 100), now_ms=NOW_MS)
    assert log.read(1, 40).size == 0
    assert log.read(1, 40, min_one_batch=True).size == 100
    assert log.read(1, 150, min_one_batch=True).size == 150
    assert log.read(1, 0).region is None
    assert log.read(1, 10**9).size == 200


def test_the_upper_offset_is_exact_to_the_batch() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for offset in (0, 3, 6):
        log.append_as_follower(leader_batch(offset, b"a", b"b", b"c"), now_ms=NOW_MS)
    size = len(leader_batch(0, b"a", b"b", b"c"))
    sizes = [log.read(0, 10**6, upper_offset=upper).size // size for upper in range(11)]
    assert sizes == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


def test_offsets_outside_of_the_log_are_refused_at_both_ends() -> None:
    log = open_log(new_disk(), DIRECTORY)
    append(log, b"a", b"b", b"c", b"d")
    log.raise_high_watermark(4)
    delete_records_before(log, 2)
    for offset in (-1, 0, 1, 5):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 100)
    assert log.read(4, 100).region is None
    # The batch that holds the log start is sent whole: its reader skips what it did not ask for.
    assert [record.offset for record in read_records(log, 2)] == [2, 3]


def test_what_compaction_left_empty_is_passed_over() -> None:
    log = open_log(new_disk(), DIRECTORY)
    log.append_as_follower(leader_batch(0, b"a"), now_ms=NOW_MS)
    log.roll(NOW_MS, 50)
    log.roll(NOW_MS, 80)
    log.append_as_follower(leader_batch(90, b"b"), now_ms=NOW_MS)
    assert [record.offset for record in read_records(log, 1)] == [90]
    assert log.read(60, 100, upper_offset=70).region is None


def test_a_region_outlives_its_segment() -> None:
    disk = new_disk()
    config = LogConfig(segment_bytes=100, retention_bytes=0, file_delete_delay_ms=1000)
    log = open_log(disk, DIRECTORY, config, handle_count=3)
    batches = [sized_batch(offset, 100) for offset in range(12)]
    for batch in batches:
        log.append_as_follower(batch, now_ms=NOW_MS)
    regions = [log.read(offset, 100).region for offset in range(12)]
    log.raise_high_watermark(12)
    assert len(apply_retention(log, NOW_MS)) == 12
    assert [region.read() for region in regions if region is not None] == batches


# -- the notes' segments -------------------------------------------------------------------------


def notes_log() -> PartitionLog:
    """Segments at 0, 170410 and 239430, the second indexed as in the notes."""
    log = open_log(new_disk(), DIRECTORY, LogConfig(index_interval_bytes=340))
    log.append_as_follower(sized_batch(0, 100), now_ms=NOW_MS)
    log.append_as_follower(sized_batch(170409, 100), now_ms=NOW_MS)
    log.roll(NOW_MS)
    for number, size in enumerate((116, 116, 116, 75, 75, 75, 75, 677, 90, 90)):
        log.append_as_follower(sized_batch(170410 + number, size), now_ms=NOW_MS)
    log.append_as_follower(sized_batch(239429, 100), now_ms=NOW_MS)
    log.roll(NOW_MS)
    log.append_as_follower(sized_batch(239430, 100), now_ms=NOW_MS)
    return log


def test_offset_170418_is_found_in_the_second_of_the_notes_segments() -> None:
    log = notes_log()
    assert [segment.base_offset for segment in log.segments] == [0, 170410, 239430]
    assert log.segments.floor_number(170418) == 1
    assert log.segments[1].offset_index.lookup(170418) == (170418, 1325)
    region = log.read(170418, 90).region
    assert isinstance(region, FileRegion)
    assert region.file.path.endswith("/00000000000000170410.log")
    assert region.position == 1325
    assert region.read() == sized_batch(170418, 90)


def test_every_offset_of_the_notes_segments_is_found() -> None:
    log = notes_log()
    offsets = [0, *range(170409, 170420), 239429, 239430]
    assert [record.offset for record in read_records(log, 0)] == offsets
    for offset in offsets:
        region = log.read(offset, 1, min_one_batch=True).region
        assert region is not None
        ((_, header),) = iter_batch_headers(region.read())
        assert header.base_offset == offset


# -- by time -------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), min_size=1, max_size=15),
    st.integers(0, 50),
    st.booleans(),
)
def test_the_offset_for_a_timestamp_equals_a_scan_of_all_records(
    batches: list[list[int]], start: int, reopen: bool
) -> None:
    disk, config = new_disk(), LogConfig(segment_bytes=350, index_interval_bytes=100)
    log = open_log(disk, DIRECTORY, config)
    records: list[Record] = []
    for timestamps in batches:
        first = log.log_end_offset
        batch = [Record(first + n, t, b"k", b"v" * 20) for n, t in enumerate(timestamps)]
        log.append_as_follower(encode_batch(batch, leader_epoch=0), now_ms=NOW_MS)
        records += batch
    log.raise_high_watermark(log.log_end_offset)
    start = delete_records_before(log, min(start, log.log_end_offset))
    if reopen:
        log.close()
        log = open_log(
            disk,
            DIRECTORY,
            config,
            is_clean=True,
            recovery_point=log.log_end_offset,
            log_start_offset=start,
        )
    visible = [record for record in records if record.offset >= start]
    for timestamp in range(-1, 32):
        expected = next((r for r in visible if r.timestamp >= timestamp), None)
        assert log.offset_for_timestamp(timestamp) == (
            None if expected is None else (expected.timestamp, expected.offset)
        )


def test_the_largest_timestamp_is_that_of_the_first_record_that_has_it() -> None:
    log = open_log(new_disk(), DIRECTORY, LogConfig(segment_bytes=250))
    assert log.max_timestamp() is None
    for offset, timestamp in enumerate((5, 9, 7, 9, 8)):
        log.append_as_follower(sized_batch(offset, 100, timestamp=timestamp), now_ms=NOW_MS)
    assert log.max_timestamp() == (9, 1)


def test_the_largest_timestamp_is_one_that_can_be_read() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for offset, timestamp in enumerate((9, 7, 8)):
        log.append_as_follower(sized_batch(offset, 100, timestamp=timestamp), now_ms=NOW_MS)
    log.raise_high_watermark(3)
    delete_records_before(log, 1)
    assert log.max_timestamp() == (8, 2)


def test_the_largest_timestamp_in_a_batch_of_which_a_part_was_deleted() -> None:
    log = open_log(new_disk(), DIRECTORY)
    records = [Record(number, t, b"k", b"v") for number, t in enumerate((9, 6, 7, 5))]
    log.append_as_follower(encode_batch(records, leader_epoch=0), now_ms=NOW_MS)
    log.append_as_follower(leader_batch(4, b"v", timestamp=6), now_ms=NOW_MS)
    log.raise_high_watermark(5)
    delete_records_before(log, 1)
    assert log.max_timestamp() == (7, 2)
    delete_records_before(log, 3)
    assert log.max_timestamp() == (6, 4)
    delete_records_before(log, 5)
    assert log.max_timestamp() is None


@given(
    times=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=3), min_size=1, max_size=25),
    interval=st.sampled_from([0, 150, 100_000]),
    data=st.data(),
)
def test_the_largest_timestamp_in_front_of_an_offset(
    times: list[list[int]], interval: int, data: st.DataObject
) -> None:
    """Most of it comes from indexes, which are as dense or as thin as they are set."""
    config = LogConfig(segment_bytes=600, index_interval_bytes=interval)
    log = open_log(new_disk(), DIRECTORY, config)
    timestamps: list[int] = []
    for each in times:
        records = [Record(number, t, b"k", b"v") for number, t in enumerate(each)]
        batch = bytearray(encode_batch(records, leader_epoch=0))
        patch_batch(batch, 0, base_offset=len(timestamps), leader_epoch=0)
        log.append_as_follower(bytes(batch), now_ms=NOW_MS)
        timestamps += each
    start = data.draw(st.integers(0, len(timestamps)))
    log.raise_high_watermark(log.log_end_offset)
    delete_records_before(log, start)
    for upper in range(len(timestamps) + 1):
        wanted = timestamps[start:upper]
        expected = (max(wanted), start + wanted.index(max(wanted))) if wanted else None
        assert log.max_timestamp(upper) == expected
