"""Where a follower's log and its leader's part ways, and how it gets back to where they agree."""

from __future__ import annotations

import pytest

from headwater.replication.following.log import (
    append_fetched,
    begin_following,
    common_end,
    start_over,
    truncate_to_leader,
)
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    leader_batch,
    new_disk,
    offsets_of,
    open_log,
)
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import delete_records_before
from headwater.wire.messages.fetch import EpochEndOffset


def log_with(*epochs: int) -> PartitionLog:
    """A record for each, written in that leader epoch."""
    log = open_log(new_disk(), DIRECTORY)
    for offset, epoch in enumerate(epochs):
        log.append_as_follower(leader_batch(offset, b"v", leader_epoch=epoch), now_ms=NOW_MS)
    return log


def diverging(epoch: int, end_offset: int) -> EpochEndOffset:
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)


@pytest.mark.parametrize(
    ("epochs", "answer", "expected"),
    [
        # Both have the epoch: up to the smaller of its two ends.
        ((1, 1, 1, 3), (1, 2), 2),
        ((1, 1, 1, 3), (1, 9), 3),
        ((1, 1, 1, 1), (1, 3), 3),
        # The leader's epoch is not known here: the end of the one before, then asked again.
        ((1, 1, 4, 4), (3, 2), 2),
        ((1, 1, 4, 4), (3, 9), 2),
        # All epochs here are later than what the leader has: nothing is shared.
        ((4, 4), (2, 1), 0),
        # There are no epochs here.
        ((-1, -1, -1), (2, 1), 1),
        ((-1, -1, -1), (2, 9), 3),
    ],
)
def test_what_two_logs_share(
    epochs: tuple[int, ...], answer: tuple[int, int], expected: int
) -> None:
    assert common_end(log_with(*epochs), diverging(*answer)) == expected


def test_truncation_says_whether_it_came_nearer() -> None:
    log = log_with(1, 1, 4, 4)
    assert truncate_to_leader(log, diverging(3, 9), NOW_MS)
    assert (log.log_end_offset, log.leader_epochs.latest_epoch) == (2, 1)
    assert not truncate_to_leader(log, diverging(1, 2), NOW_MS)


def test_an_epoch_without_records_is_forgotten_by_a_follower() -> None:
    log = log_with(1, 1)
    log.leader_epochs.assign(4, 2)
    begin_following(log, NOW_MS)
    assert [tuple(each) for each in log.leader_epochs.entries] == [(1, 0)]
    # The next leader's log goes on with the epoch before: that began where it began.
    log.append_as_follower(leader_batch(2, b"v", leader_epoch=1), now_ms=NOW_MS)
    assert [tuple(each) for each in log.leader_epochs.entries] == [(1, 0)]


def test_records_from_before_leader_epochs_are_cut_at_the_high_watermark() -> None:
    log = log_with(-1, -1, -1)
    log.raise_high_watermark(2)
    begin_following(log, NOW_MS)
    assert offsets_of(log) == [0, 1]
    newer = log_with(0, 0, 0)
    newer.raise_high_watermark(1)
    begin_following(newer, NOW_MS)
    assert offsets_of(newer) == [0, 1, 2]


def test_an_empty_follower_takes_a_batch_in_which_the_leaders_log_starts() -> None:
    leader = open_log(new_disk(), DIRECTORY)
    append(leader, b"a", b"b", b"c")
    append(leader, b"d")
    leader.raise_high_watermark(4)
    delete_records_before(leader, 2)
    follower = open_log(new_disk(1), DIRECTORY)
    assert start_over(follower, leader.log_start_offset, leader.log_end_offset, NOW_MS)
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 2)
    region = leader.read(2, 1 << 20).region
    assert region is not None
    assert append_fetched(follower, region.read(), 0, NOW_MS) == leader.size_bytes
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 4)
    assert offsets_of(follower) == [2, 3]
    assert follower.size_bytes == leader.size_bytes


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "expected"),
    [
        (0, 2, (0, 2, True)),  # The leader lost its end.
        (7, 9, (7, 7, True)),  # The leader's start has passed this log.
        (1, 9, (0, 4, False)),  # They overlap: there is nothing to be done here.
    ],
)
def test_starting_over(leader_start: int, leader_end: int, expected: tuple[int, int, bool]) -> None:
    log = log_with(0, 0, 0, 0)
    has_helped = start_over(log, leader_start, leader_end, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, has_helped) == expected
