"""What a consumer and a follower get of a partition whose log has hidden batches."""

from __future__ import annotations

from headwater.replication.partition.partition_read import read_for_consumer, read_for_follower
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    append,
    append_numbered,
    end_transaction,
    new_disk,
    open_log,
)
from headwater.storage.partition_log import PartitionLog
from tests.support.models.hidden_log import append_delayed, whole_batches

LARGE = 1 << 20


def filled() -> PartitionLog:
    """Seen 0, hidden 1, an aborted transaction 2 with its marker 3, hidden 4."""
    log = open_log(new_disk(), DIRECTORY)
    append(log, b"seen")
    append_delayed(log, b"hidden")
    append_numbered(log, 0, b"aborted", transactional=True)
    end_transaction(log, 7, commit=False)
    append_delayed(log, b"hidden")
    log.raise_high_watermark(5)
    return log


def test_a_consumer_is_told_of_what_it_can_reach() -> None:
    read = read_for_consumer(filled(), 0, LARGE, committed_only=True)
    assert read.log_read.region is not None
    found = whole_batches(read.log_read.region.read())
    assert [header.base_offset for header in found] == [0, 2, 3]
    assert (read.high_watermark, read.last_stable_offset) == (4, 4)
    assert read.aborted is not None
    assert [each.first_offset for each in read.aborted] == [2]


def test_a_consumer_at_the_end_that_it_sees_gets_nothing() -> None:
    for offset in (4, 5):
        read = read_for_consumer(filled(), offset, LARGE, min_one_batch=True)
        assert read.log_read.region is None and read.log_read.counted_bytes == 0
        assert read.high_watermark == 4


def test_an_open_transaction_behind_hidden_batches_holds_consumers_in_front_of_these() -> None:
    log = filled()
    append_numbered(log, 1, b"open", transactional=True)
    log.raise_high_watermark(6)
    read = read_for_consumer(log, 4, LARGE, committed_only=True, min_one_batch=True)
    assert read.log_read.region is None
    assert (read.high_watermark, read.last_stable_offset) == (6, 4)


def test_a_follower_gets_all() -> None:
    read = read_for_follower(filled(), 0, LARGE)
    assert read.log_read.region is not None
    found = whole_batches(read.log_read.region.read())
    assert [header.base_offset for header in found] == [0, 1, 2, 3, 4]
    assert (read.high_watermark, read.last_stable_offset) == (5, 5)
