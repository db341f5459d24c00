"""Which segments retention drops, and how."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    append,
    append_numbered,
    new_disk,
    open_log,
    read_records,
    sized_batch,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import OffsetOutOfRangeError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.snapshot import list_snapshots
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.retention import apply_retention, delete_records_before
from headwater.storage.waiting_messages import WaitingMessages

KEEP_ALL = LogConfig(segment_bytes=200, retention_ms=-1)


def log_of_segments(
    config: LogConfig,
    timestamps: list[int],
    disk: FaultyDisk | None = None,
    *,
    high_watermark: int | None = None,
) -> PartitionLog:
    """Segments of two batches of 100 bytes, all replicated unless it says how many."""
    log = open_log(disk or new_disk(), DIRECTORY, config)
    for offset, timestamp in enumerate(timestamps):
        batch = sized_batch(offset, 100, timestamp=timestamp)
        log.append_as_follower(batch, now_ms=NOW_MS)
    log.raise_high_watermark(log.log_end_offset if high_watermark is None else high_watermark)
    return log


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def dropped(log: PartitionLog, now_ms: int = NOW_MS) -> list[int]:
    return [expired.segment.base_offset for expired in apply_retention(log, now_ms)]


# -- by time -------------------------------------------------------------------------------------


def test_the_youngest_record_of_a_segment_decides() -> None:
    config = LogConfig(segment_bytes=200, retention_ms=1000)
    log = log_of_segments(config, [10, 500, 600, 20, 30, 40, 5000, 5000])
    assert dropped(log, 1500) == []
    assert dropped(log, 1501) == [0]
    assert dropped(log, 1601) == [2, 4]
    assert (bases(log), log.log_start_offset) == ([6], 6)


def test_an_old_segment_behind_a_younger_one_stays() -> None:
    log = log_of_segments(LogConfig(segment_bytes=200, retention_ms=1000), [9000, 1, 1, 1, 1, 1])
    assert dropped(log, 5000) == []
    assert dropped(log, 10_001) == [0, 2, 4]


def test_minus_one_keeps_for_ever() -> None:
    log = log_of_segments(KEEP_ALL, [0] * 6)
    assert dropped(log, 10**15) == []
    assert bases(log) == [0, 2, 4]


def test_when_all_has_expired_the_log_rolls_first() -> None:
    log = log_of_segments(LogConfig(segment_bytes=200, retention_ms=1000), [1] * 5)
    assert dropped(log) == [0, 2, 4]
    assert bases(log) == [5]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (5, 5, 0)
    assert dropped(log, NOW_MS * 2) == []  # An empty active segment stays.
    assert append(log, b"next").base_offset == 5


@pytest.mark.parametrize("timestamp", [-1, 0], ids=["none", "zero, which stood for none"])
def test_records_without_a_timestamp_are_as_old_as_their_file(timestamp: int) -> None:
    disk = new_disk()
    log = log_of_segments(LogConfig(segment_bytes=200, retention_ms=1000), [timestamp] * 4, disk)
    written_ms = disk.clock.wall_ms()
    assert dropped(log, written_ms + 1000) == []
    assert dropped(log, written_ms + 1001) == [0, 2]


# -- by size -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention_bytes", "expected"),
    [(-1, []), (600, []), (599, []), (401, []), (400, [0]), (200, [0, 2]), (0, [0, 2, 4])],
)
def test_whole_segments_beyond_the_size_go(retention_bytes: int, expected: list[int]) -> None:
    config = LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=retention_bytes)
    log = log_of_segments(config, [NOW_MS] * 6)
    assert dropped(log) == expected
    assert log.size_bytes >= min(600, retention_bytes)


# -- by start offset -----------------------------------------------------------------------------


def test_the_notes_example_of_segments_at_0_11_and_23() -> None:
    log = open_log(new_disk(), DIRECTORY, LogConfig(retention_ms=-1))
    for offset in range(40):
        if offset in (11, 23):
            log.roll(NOW_MS)
        append(log, b"v")
    log.raise_high_watermark(40)
    assert bases(log) == [0, 11, 23]
    delete_records_before(log, 25)
    assert bases(log) == [0, 11, 23]  # Hidden at once, dropped by the next round.
    assert dropped(log) == [0, 11]
    assert (bases(log), log.log_start_offset) == ([23], 25)
    assert [record.offset for record in read_records(log, 25)] == list(range(25, 40))


@given(st.integers(0, 10), st.integers(0, 10))
def test_segments_go_when_the_next_one_starts_at_or_before_the_log_start(
    start: int, high_watermark: int
) -> None:
    log = log_of_segments(KEEP_ALL, [NOW_MS] * 10, high_watermark=max(start, high_watermark))
    delete_records_before(log, start)
    expected = [base for base in (0, 2, 4, 6) if base + 2 <= min(start, log.high_watermark)]
    assert dropped(log) == expected
    assert log.log_start_offset == start


def test_without_a_policy_all_is_kept_but_what_was_deleted_by_hand() -> None:
    config = LogConfig(
        segment_bytes=200, retention_ms=0, retention_bytes=0, cleanup_policy=frozenset()
    )
    log = log_of_segments(config, [5] * 6)
    assert dropped(log) == []
    assert not config.is_compacted
    delete_records_before(log, 3)
    assert dropped(log) == [0]


def test_compacted_topics_lose_only_what_lies_before_the_log_start() -> None:
    config = LogConfig(
        segment_bytes=200,
        retention_ms=0,
        retention_bytes=0,
        cleanup_policy=frozenset({"compact"}),
    )
    log = log_of_segments(config, [5] * 6)
    assert dropped(log) == []
    delete_records_before(log, 3)
    assert dropped(log) == [0]


def test_records_behind_the_high_watermark_cannot_be_deleted() -> None:
    log = log_of_segments(KEEP_ALL, [NOW_MS] * 4, high_watermark=3)
    with pytest.raises(OffsetOutOfRangeError):
        delete_records_before(log, 4)
    assert delete_records_before(log, 3) == 3
    assert delete_records_before(log, 1) == 3  # It never goes back.


# -- the bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("high_watermark", range(7))
def test_nothing_at_or_behind_the_high_watermark_goes(high_watermark: int) -> None:
    config = LogConfig(segment_bytes=200, retention_ms=0, retention_bytes=0)
    log = log_of_segments(config, [0] * 6, high_watermark=high_watermark)
    assert dropped(log) == [base for base in (0, 2, 4) if base + 2 <= high_watermark]


# -- what happens to them ------------------------------------------------------------------------


def test_files_get_the_deleted_suffix_and_go_after_the_delay() -> None:
    disk = new_disk()
    config = LogConfig(
        segment_bytes=200, retention_ms=-1, retention_bytes=200, file_delete_delay_ms=60_000
    )
    log = log_of_segments(config, [NOW_MS] * 6, disk)
    region = log.read(0, 100).region
    assert dropped(log) == [0, 2]
    deleted = [name for name in disk.list_dir(DIRECTORY) if name.endswith(".deleted")]
    assert [name for name in deleted if ".log" in name] == [
        f"{0:020}.log.deleted",
        f"{2:020}.log.deleted",
    ]
    assert len(deleted) == 6
    assert region is not None and region.read() == sized_batch(0, 100)
    assert log.retired.remove_due(NOW_MS + 59_999) == 0
    assert log.retired.remove_due(NOW_MS + 60_000) == 2
    assert not any(name.endswith(".deleted") for name in disk.list_dir(DIRECTORY))


def test_epochs_producers_and_snapshots_follow_the_log_start() -> None:
    disk = new_disk()
    config = LogConfig(segment_bytes=300, retention_ms=-1, retention_bytes=300)
    log = open_log(disk, DIRECTORY, config)
    append_numbered(log, 0, b"v" * 50, producer_id=5)
    for sequence in range(9):
        append_numbered(log, sequence, b"v" * 50, leader_epoch=sequence)
    log.raise_high_watermark(log.log_end_offset)
    apply_retention(log, NOW_MS)
    start = log.log_start_offset
    assert start > 2
    assert log.leader_epochs.entries[0] == (start - 1, start)
    assert min(list_snapshots(disk, DIRECTORY)) >= start
    # What is known of a producer outlives its records.
    assert log.producer_states.entry(5) is not None
    assert append_numbered(log, 8, b"v" * 50).is_duplicate


def test_producers_outlive_their_records_also_after_a_crash() -> None:
    config = LogConfig(segment_bytes=300, retention_ms=-1, retention_bytes=300)
    for seed in range(20):
        disk = new_disk(seed)
        log = open_log(disk, DIRECTORY, config)
        append_numbered(log, 0, b"v" * 50, producer_id=5)
        for sequence in range(9):
            append_numbered(log, sequence, b"v" * 50)
        log.flush()
        log.raise_high_watermark(log.log_end_offset)
        apply_retention(log, NOW_MS)
        log.flush()
        start, recovery_point = log.log_start_offset, log.recovery_point
        log = open_log(
            disk.crash(random.Random(seed)),
            DIRECTORY,
            config,
            recovery_point=recovery_point,
            log_start_offset=start,
        )
        assert append_numbered(log, 0, b"v" * 50, producer_id=5).is_duplicate, seed


def test_producers_outlive_their_records_also_after_a_recovery() -> None:
    disk = new_disk()
    config = LogConfig(segment_bytes=300, retention_ms=-1, retention_bytes=300)
    log = open_log(disk, DIRECTORY, config)
    append_numbered(log, 0, b"v" * 50, producer_id=5)
    for sequence in range(9):
        append_numbered(log, sequence, b"v" * 50)
    log.flush()
    log = open_log(disk, DIRECTORY, config)  # With the recovery point of long ago.
    log.raise_high_watermark(log.log_end_offset)
    apply_retention(log, NOW_MS)
    log.flush()
    start, recovery_point = log.log_start_offset, log.recovery_point
    log = open_log(disk, DIRECTORY, config, recovery_point=recovery_point, log_start_offset=start)
    assert append_numbered(log, 0, b"v" * 50, producer_id=5).is_duplicate


def test_the_start_is_kept_before_any_file_goes() -> None:
    """Whatever names a crash brings back, no record comes back and none is missing."""
    config = LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=400)
    for seed in range(20):
        disk = new_disk(seed)
        kept: list[int] = [0]

        def load(disk: FaultyDisk, kept: list[int] = kept) -> PartitionLog:
            return LogLoader(
                PARTITION,
                DIRECTORY,
                config,
                disk,
                HandleCache(disk, 16),
                now_ms=NOW_MS,
                log_start_offset=kept[-1],
                keep_log_start=kept.append,
            ).load()

        log = load(disk)
        for offset in range(10):
            log.append_as_follower(sized_batch(offset, 100), now_ms=NOW_MS)
        log.flush()
        log.raise_high_watermark(10)
        assert dropped(log) == [0, 2, 4]
        if seed % 2:
            log.retired.remove_due(NOW_MS + config.file_delete_delay_ms)
        log = load(disk.crash(random.Random(seed)))
        assert (log.log_start_offset, log.log_end_offset) == (6, 10)
        assert [record.offset for record in read_records(log, 6)] == [6, 7, 8, 9]


# -- what waits ----------------------------------------------------------------------------------


def waiting_in(*base_offsets: int, size_bytes: int = 100) -> WaitingMessages:
    waiting = WaitingMessages()
    for base_offset in base_offsets:
        waiting.add(base_offset, size_bytes)
    waiting.is_complete = True
    return waiting


def test_neither_age_nor_size_takes_a_segment_in_which_something_waits() -> None:
    config = LogConfig(segment_bytes=200, retention_ms=1000, retention_bytes=0)
    log = log_of_segments(config, [1] * 6)
    log.waiting = waiting_in(2)
    assert dropped(log) == [0]
    log.waiting.remove(2, 0)
    assert dropped(log) == [2, 4]


def test_a_segment_stays_until_the_copies_of_what_waited_there_are_safe() -> None:
    config = LogConfig(segment_bytes=200, retention_ms=1000)
    log = log_of_segments(config, [1] * 6, high_watermark=5)
    log.waiting = waiting_in(0)
    log.waiting.remove(0, end_offset=6)
    assert dropped(log) == []
    log.raise_high_watermark(6)
    assert dropped(log) == [0, 2, 4]


def test_until_it_is_known_what_waits_nothing_goes() -> None:
    log = log_of_segments(LogConfig(segment_bytes=200, retention_ms=1000), [1] * 6)
    log.waiting = WaitingMessages()
    assert dropped(log) == []


def test_bytes_that_wait_do_not_count() -> None:
    config = LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=400)
    log = log_of_segments(config, [NOW_MS] * 6)
    log.waiting = waiting_in(4, size_bytes=150)
    assert dropped(log) == []
    log.waiting = waiting_in()
    assert dropped(log) == [0]


def test_what_waits_goes_with_deleted_records() -> None:
    log = log_of_segments(KEEP_ALL, [NOW_MS] * 6)
    log.waiting = waiting_in(0, 2, 4)
    delete_records_before(log, 4)
    assert dropped(log) == [0, 2]
    assert (log.waiting.segments, log.waiting.count, log.waiting.bytes) == ([4], 1, 100)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000)), max_size=30), st.randoms())
def test_a_count_ends_at_nothing_whatever_the_sizes(
    added: list[tuple[int, int]], chance: random.Random
) -> None:
    waiting = WaitingMessages()
    for base_offset, size_bytes in added:
        waiting.add(base_offset, size_bytes)
    kept = WaitingMessages()
    kept.load_json(waiting.as_json())
    assert (kept.count, kept.bytes) == (len(added), sum(size for _, size in added))
    chance.shuffle(added)
    for base_offset, _ in added:
        kept.remove(base_offset, 0)
        assert kept.bytes >= 0
    assert (kept.count, kept.bytes, kept.segments) == (0, 0, [])
