"""A follower's log is its leader's: the same bytes and segments, the same memory of producers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    append_numbered,
    leader_batch,
    new_disk,
    offsets_of,
    open_log,
    sized_batch,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.errors import OffsetOutOfRangeError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.storage.producers.snapshot import list_snapshots
from headwater.storage.truncation import truncate_to
from headwater.wire.records import ControlType, CorruptRecordError, encode_end_transaction_marker

#: Segments of a few batches, by size and by time.
CONFIG = LogConfig(segment_bytes=1_200, segment_ms=50, index_interval_bytes=150)


def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch() -> None:
    log = open_log(new_disk(), DIRECTORY)
    first, second = sized_batch(0, 100), sized_batch(1, 120)
    for cut in (0, 1, 11, 12, 61, 119):
        log = open_log(new_disk(), DIRECTORY)
        assert log.append_as_follower(first + second[:cut], now_ms=NOW_MS) == 100
        assert (log.log_end_offset, log.size_bytes) == (1, 100)
        assert log.append_as_follower(second, now_ms=NOW_MS) == 120
        assert offsets_of(log) == [0, 1]


def test_an_answer_without_a_whole_batch_is_an_error() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for size in (1, 60, 99):
        with pytest.raises(CorruptRecordError, match="no whole batch"):
            log.append_as_follower(sized_batch(0, 100)[:size], now_ms=NOW_MS)
    assert log.append_as_follower(b"", now_ms=NOW_MS) == 0
    assert log.log_end_offset == 0


def test_a_damaged_batch_stops_all_that_came_with_it() -> None:
    log = open_log(new_disk(), DIRECTORY)
    damaged = bytearray(sized_batch(1, 100))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        log.append_as_follower(sized_batch(0, 100) + damaged, now_ms=NOW_MS)
    assert log.log_end_offset == 0


def test_what_a_later_leader_wrote_is_not_taken_from_an_earlier_one() -> None:
    log = open_log(new_disk(), DIRECTORY)
    data = leader_batch(0, b"a", leader_epoch=3) + leader_batch(1, b"b", leader_epoch=4)
    size = log.append_as_follower(data, now_ms=NOW_MS, leader_epoch=3)
    assert size == len(leader_batch(0, b"a", leader_epoch=3))
    assert (log.log_end_offset, log.leader_epochs.latest_epoch) == (1, 3)
    later = leader_batch(1, b"b", leader_epoch=4)
    assert log.append_as_follower(later, now_ms=NOW_MS, leader_epoch=3) == 0
    assert log.append_as_follower(later, now_ms=NOW_MS, leader_epoch=4) == len(later)
    assert log.log_end_offset == 2


def test_a_batch_in_front_of_the_logs_end_is_refused() -> None:
    log = open_log(new_disk(), DIRECTORY)
    log.append_as_follower(leader_batch(0, b"a", b"b"), now_ms=NOW_MS)
    with pytest.raises(OffsetOutOfRangeError, match="cannot take a batch at 1"):
        log.append_as_follower(leader_batch(1, b"c"), now_ms=NOW_MS)


# -- the same as the leader ----------------------------------------------------------------------


class Leader:
    """A leader's log, written to by ordinary, numbering and transactional producers."""

    def __init__(self, disk: FaultyDisk) -> None:
        self.log = open_log(disk, DIRECTORY, CONFIG)
        self.sequences: dict[int, int] = {}
        self.is_open: set[int] = set()
        self.epoch = 0
        self.time_ms = NOW_MS

    def step(self, kind: str, producer_id: int, size: int) -> None:
        self.time_ms += size // 10
        log, values = self.log, [b"v" * size] * (1 + size % 3)
        match kind:
            case "election":
                self.epoch += 1
            case "plain":
                append(log, *values, timestamp=self.time_ms, leader_epoch=self.epoch)
            case "commit" | "abort":
                if producer_id in self.is_open:
                    self.is_open.discard(producer_id)
                    self.end_transaction(producer_id, is_commit=kind == "commit")
            case _:
                transactional = kind == "transactional" or producer_id in self.is_open
                if transactional:
                    self.is_open.add(producer_id)
                sequence = self.sequences.get(producer_id, 0)
                self.sequences[producer_id] = sequence + len(values)
                append_numbered(
                    log,
                    sequence,
                    *values,
                    producer_id=producer_id,
                    transactional=transactional,
                    timestamp=self.time_ms,
                    leader_epoch=self.epoch,
                )

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        marker = encode_end_transaction_marker(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=self.time_ms,
        )
        self.log.append_as_leader(
            marker,
            leader_epoch=self.epoch,
            now_ms=self.time_ms,
            origin=AppendOrigin.COORDINATOR,
        )


def copy(leader: PartitionLog, follower: PartitionLog, max_bytes: int) -> None:
    """What one fetch brings, cut off anywhere."""
    read = leader.read(follower.log_end_offset, max_bytes, min_one_batch=True)
    if read.region is not None:
        follower.append_as_follower(read.region.read(), now_ms=NOW_MS)


def state(log: PartitionLog) -> dict[str, Any]:
    """All that a log knows which a new leader must know."""
    states = log.producer_states
    return {
        "end": log.log_end_offset,
        "epochs": log.leader_epochs.entries,
        "producers": sorted(states),
        "open": states.first_undecided_offset,
        "unstable": states.first_unstable_offset,
        "stable": log.last_stable_offset,
        "segments": [(each.base_offset, each.size_bytes) for each in log.segments],
        "aborted": log.aborted_transactions(0, log.log_end_offset),
        "youngest": log.max_timestamp(),
    }


steps = st.tuples(
    st.sampled_from(["election", "plain", "numbered", "transactional", "commit", "abort"]),
    st.integers(1, 3),
    st.integers(1, 300),
)


#: The follower hears of an abort and of the next transaction at once.
TOGETHER = [("transactional", 1, 1), ("abort", 1, 1), ("plain", 1, 1), ("transactional", 2, 1)]


@given(st.lists(steps, max_size=60), st.lists(st.integers(1, 3_000), min_size=1, max_size=10))
def test_a_follower_knows_all_that_its_leader_knows(
    written: list[tuple[str, int, int]], fetch_sizes: list[int]
) -> None:
    disks = new_disk(0), new_disk(1)
    leader, follower = Leader(disks[0]), open_log(disks[1], DIRECTORY, CONFIG)
    for number, step in enumerate(written):
        leader.step(*step)
        if number % 3 == 0:
            copy(leader.log, follower, fetch_sizes[number % len(fetch_sizes)])
    while follower.log_end_offset < leader.log.log_end_offset:
        copy(leader.log, follower, fetch_sizes[0])
    for log in (leader.log, follower):
        log.raise_high_watermark(log.log_end_offset)
    assert state(follower) == state(leader.log)
    for log in (leader.log, follower):
        log.close()
    # Every file is the same, to the last byte of index and snapshot.
    assert disks[1].contents() == disks[0].contents()
    assert list_snapshots(disks[1], DIRECTORY) == list_snapshots(disks[0], DIRECTORY)


@given(st.lists(steps, min_size=5, max_size=40), st.integers(0, 100), st.integers(1, 3_000))
@example([("election", 1, 1), *TOGETHER], 0, 3_000)
def test_a_follower_that_was_cut_back_learns_the_same_again(
    written: list[tuple[str, int, int]], cut: int, fetch_size: int
) -> None:
    leader, follower = Leader(new_disk(0)), open_log(new_disk(1), DIRECTORY, CONFIG)
    for step in written:
        leader.step(*step)
    while follower.log_end_offset < leader.log.log_end_offset:
        copy(leader.log, follower, fetch_size)
    truncate_to(follower, follower.log_end_offset * cut // 100, NOW_MS)
    while follower.log_end_offset < leader.log.log_end_offset:
        copy(leader.log, follower, fetch_size)
    for log in (leader.log, follower):
        log.raise_high_watermark(log.log_end_offset)
    expected, found = state(leader.log), state(follower)
    # A snapshot has one batch of a producer and one timestamp; the rest is recalled when needed.
    for each in (expected, found):
        each["producers"] = [
            (entry._replace(batches=()), [batch[:3] for batch in entry.batches[-1:]])
            for entry in each["producers"]
        ]
    assert found == expected
