"""What consumers see of a log with hidden batches, against a walk through all of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, append, new_disk, open_log, reopened
from headwater.storage.disk.files import FileRegion
from headwater.storage.log_config import LogConfig
from headwater.storage.visible_reads import PIECE_BYTES_LARGE, JoinedRegion
from headwater.wire.records import read_batch_header
from tests.support.models.hidden_log import (
    HiddenLog,
    append_delayed,
    whole_batches,
    without_times,
)
from tests.support.tiers import rounds

LARGE = 1 << 20
STEPS = (
    HiddenLog.show,
    HiddenLog.show,
    HiddenLog.hide,
    HiddenLog.hide,
    HiddenLog.hide,
    HiddenLog.hide_in_transaction,
    HiddenLog.mark,
    HiddenLog.copy_from_leader,
    HiddenLog.roll,
    HiddenLog.truncate,
    HiddenLog.flush,
    HiddenLog.reopen,
    HiddenLog.delete_records,
)
BACKWARD = (HiddenLog.truncate, HiddenLog.reopen)
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(1, 4), st.integers(0, 120)), max_size=18
)


@given(steps, st.data())
@settings(max_examples=rounds(100, 1000), deadline=None)
def test_consumers_see_what_a_walk_finds(taken: list, data: st.DataObject) -> None:  # type: ignore[type-arg]
    world = HiddenLog()
    told = 0
    for step, count, size in taken:
        step(world, count, size)
        log = world.log
        end = log.log_end_offset
        found = [
            [] if segment.hidden is None else without_times(list(segment.hidden))
            for segment in log.segments
        ]
        assert found == world.stretches()
        assert log.has_hidden or not any(found)
        now = log.visible_end(end)
        assert now == world.visible_end(end)
        assert now >= told or step in BACKWARD
        told = now
    headers = world.headers()
    for upper in range(world.log.log_start_offset, world.log.log_end_offset + 1):
        assert world.log.visible_end(upper) == world.visible_end(upper, headers)
    _check_reads(world, data)


def _check_reads(world: HiddenLog, data: st.DataObject) -> None:
    log = world.log
    offset = data.draw(st.integers(log.log_start_offset, log.log_end_offset), label="offset")
    upper = data.draw(st.integers(offset, log.log_end_offset), label="upper")
    max_bytes = data.draw(st.sampled_from((1, 100, 300, 1000, LARGE)), label="max_bytes")
    expected = world.seen(offset, upper)
    found = []
    while True:
        read = log.read_records(offset, max_bytes, upper_offset=upper, min_one_batch=True)
        if read.region is None:
            break
        bytes_read = read.region.read()
        assert len(bytes_read) == read.size == read.counted_bytes
        assert read.size <= max(max_bytes, read_batch_header(bytes_read).size_bytes)
        batches = whole_batches(bytes_read)
        found += batches
        assert batches, "nobody gets on from here"
        assert offset < batches[-1].next_offset <= read.upper_offset
        offset = batches[-1].next_offset
    assert found == expected
    small = log.read_records(log.log_start_offset, 1, upper_offset=upper)
    assert small.region is None, "a batch that is too large is left out"


def test_large_pieces_are_regions_and_small_ones_are_joined() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for number in range(3):
        append(log, b"v" * 100)
        append_delayed(log, b"h" * (10_000 * number))
    append(log, b"v" * PIECE_BYTES_LARGE)
    append_delayed(log, b"h")
    append(log, b"w" * PIECE_BYTES_LARGE)
    end = log.log_end_offset
    joined = log.read_records(0, LARGE, upper_offset=end)
    assert isinstance(joined.region, JoinedRegion)
    assert [header.base_offset for header in whole_batches(joined.region.read())] == [0, 2, 4, 6, 8]
    large = log.read_records(6, LARGE, upper_offset=end)
    assert isinstance(large.region, FileRegion) and large.has_more
    assert [header.base_offset for header in whole_batches(large.region.read())] == [6]
    last = log.read_records(8, LARGE, upper_offset=end)
    assert isinstance(last.region, FileRegion) and not last.has_more


def test_a_run_over_segments_ends_what_consumers_see_where_it_begins() -> None:
    world = HiddenLog()
    log = world.log
    append(log, b"seen")
    for _ in range(5):
        append_delayed(log, b"h")
        log.roll(NOW_MS)
        assert log.visible_end(log.log_end_offset) == 1
    assert log.visible_end(3) == 1
    assert log.read_records(0, LARGE, upper_offset=6, min_one_batch=True).upper_offset == 1
    assert log.read_records(1, LARGE, upper_offset=6, min_one_batch=True).region is None
    append(log, b"seen")
    assert log.visible_end(7) == 7
    read = log.read_records(1, LARGE, upper_offset=7)
    assert read.region is not None
    assert read_batch_header(read.region.read()).base_offset == 6
    assert log.visible_end(6) == 1
    log.raise_log_start(4)
    assert log.visible_end(6) == 4


def test_a_log_without_hidden_batches_has_nothing_of_them() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    append(log, b"v")
    log.roll(NOW_MS)
    append(log, b"v")
    log = reopened(log, disk)
    assert not log.has_hidden
    assert all(segment.hidden is None for segment in log.segments)
    assert not [name for name in disk.list_dir(DIRECTORY) if "hidden" in name]
    assert log.visible_end(2) == 2


@pytest.mark.parametrize("is_clean", [False, True])
def test_times_find_no_hidden_batch(is_clean: bool) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, LogConfig(index_interval_bytes=1))
    append(log, b"v", timestamp=NOW_MS - 50_000)
    append_delayed(log, b"h", append_ms=NOW_MS)
    append(log, b"v", timestamp=NOW_MS - 40_000)
    append_delayed(log, b"h", append_ms=NOW_MS)
    log.roll(NOW_MS)
    append_delayed(log, b"h", append_ms=NOW_MS + 5)
    if is_clean:
        log = reopened(log, disk)
    else:
        log = open_log(disk, DIRECTORY, LogConfig(index_interval_bytes=1))
    assert log.max_timestamp() == (NOW_MS - 40_000, 2)
    assert log.offset_for_timestamp(NOW_MS - 45_000) == (NOW_MS - 40_000, 2)
    assert log.offset_for_timestamp(NOW_MS - 30_000) is None
    # Yet they grow old by the time of their append.
    assert [segment.largest_timestamp for segment in log.segments] == [NOW_MS, NOW_MS + 5]
    log.raise_log_start(3)
    assert log.max_timestamp() is None
