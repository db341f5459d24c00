"""What readers of committed data may see: the last stable offset and the aborted transactions."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    append_numbered,
    end_transaction,
    new_disk,
    open_log,
)
from headwater.storage.errors import InvalidTxnStateError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import delete_records_before
from headwater.storage.truncation import truncate_to
from headwater.wire.records import iter_batch_headers


def new_log() -> PartitionLog:
    return open_log(new_disk(), DIRECTORY)


def replicated(log: PartitionLog) -> PartitionLog:
    log.raise_high_watermark(log.log_end_offset)
    return log


def test_without_transactions_the_last_stable_offset_is_the_high_watermark() -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    assert log.last_stable_offset == 0
    log.raise_high_watermark(2)
    assert log.last_stable_offset == 2


def test_an_open_transaction_holds_the_last_stable_offset_back() -> None:
    log = new_log()
    append(log, b"a")
    append_numbered(log, 0, b"b", transactional=True)
    append(log, b"c")
    replicated(log)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    end_transaction(log, 7, commit=True)
    # The marker itself must be replicated before anything behind it is stable.
    assert log.last_stable_offset == 1
    assert replicated(log).last_stable_offset == 4


def test_the_last_stable_offset_never_passes_the_high_watermark() -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    append_numbered(log, 0, b"d", transactional=True)
    log.raise_high_watermark(2)
    assert log.last_stable_offset == 2
    log.raise_high_watermark(3)
    assert log.last_stable_offset == 3
    assert replicated(log).last_stable_offset == 3


def test_the_oldest_open_transaction_counts() -> None:
    log = new_log()
    for producer_id in (1, 2, 3):
        append_numbered(log, 0, b"v", producer_id=producer_id, transactional=True)
    end_transaction(log, 2, commit=True)
    assert replicated(log).last_stable_offset == 0
    end_transaction(log, 1, commit=False)
    assert replicated(log).last_stable_offset == 2
    end_transaction(log, 3, commit=True)
    assert replicated(log).last_stable_offset == 6


def test_the_last_stable_offset_is_not_before_the_log_start() -> None:
    log = new_log()
    append_numbered(log, 0, b"a", b"b", b"c", transactional=True)
    delete_records_before(replicated(log), 2)
    assert log.last_stable_offset == 2


def test_a_producer_with_an_open_transaction_writes_only_within_it() -> None:
    log = new_log()
    append_numbered(log, 0, b"a", transactional=True)
    with pytest.raises(InvalidTxnStateError):
        append_numbered(log, 1, b"b")
    assert log.log_end_offset == 1


def test_aborted_transactions_are_those_that_overlap_what_was_read() -> None:
    log = new_log()
    append_numbered(log, 0, b"a", producer_id=1, transactional=True)  # 0
    append_numbered(log, 0, b"b", producer_id=2, transactional=True)  # 1
    end_transaction(log, 1, commit=False)  # 2
    append(log, b"c")  # 3
    end_transaction(log, 2, commit=True)  # 4
    append_numbered(log, 1, b"d", producer_id=1, transactional=True)  # 5
    end_transaction(log, 1, commit=False)  # 6
    found = [(a.producer_id, a.first_offset) for a in log.aborted_transactions(0, 7)]
    assert found == [(1, 0), (1, 5)]
    assert [a.first_offset for a in log.aborted_transactions(0, 5)] == [0]
    assert [a.first_offset for a in log.aborted_transactions(3, 7)] == [5]
    assert log.aborted_transactions(3, 5) == []


class Ended(NamedTuple):
    producer_id: int
    first_offset: int
    marker_offset: int


#: Each step: a producer, and whether it writes, commits or aborts.
histories = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(("write", "write", "commit", "abort"))),
    max_size=30,
)


def play(log: PartitionLog, history: list[tuple[int, str]]) -> tuple[list[Ended], dict[int, int]]:
    """Append the history; returns the aborted transactions and the first offsets of open ones."""
    sequences = dict.fromkeys((1, 2, 3), 0)
    aborted: list[Ended] = []
    open_since: dict[int, int] = {}
    for producer_id, step in history:
        if step == "write":
            result = append_numbered(
                log, sequences[producer_id], b"v", producer_id=producer_id, transactional=True
            )
            sequences[producer_id] += 1
            open_since.setdefault(producer_id, result.base_offset)
        else:
            result = end_transaction(log, producer_id, commit=step == "commit")
            first = open_since.pop(producer_id, None)
            if step == "abort" and first is not None:
                aborted.append(Ended(producer_id, first, result.base_offset))
    return aborted, open_since


@pytest.mark.parametrize("restart", ["live", "clean", "crash"])
@given(history=histories, seed=st.integers(0, 99))
def test_any_history_gives_what_a_model_gives_also_after_a_restart(
    restart: str, history: list[tuple[int, str]], seed: int
) -> None:
    disk, config = new_disk(seed), LogConfig(segment_bytes=400, index_interval_bytes=100)
    log = open_log(disk, DIRECTORY, config)
    aborted, open_since = play(log, history)
    end = log.log_end_offset
    if restart == "clean":
        log.close()
    elif restart == "crash":
        log.flush()
        disk = disk.crash(random.Random(seed))
    if restart != "live":
        log = open_log(
            disk, DIRECTORY, config, is_clean=restart == "clean", recovery_point=log.recovery_point
        )
    assert log.log_end_offset == end
    assert replicated(log).last_stable_offset == min(open_since.values(), default=end)
    for first in range(0, end, 3):
        for upper in range(first + 1, end + 1, 4):
            found = log.aborted_transactions(first, upper)
            expected = {
                each
                for each in aborted
                if each.marker_offset >= first and each.first_offset < upper
            }
            assert {Ended(*each[:3]) for each in found} == expected
            assert len(found) == len(expected)


@given(histories, st.data())
def test_truncation_reopens_the_transactions_whose_end_it_removes(
    history: list[tuple[int, str]], data: st.DataObject
) -> None:
    config = LogConfig(segment_bytes=400, index_interval_bytes=100)
    log = open_log(new_disk(), DIRECTORY, config)
    play(log, history)
    offset = data.draw(st.integers(0, log.log_end_offset))
    truncate_to(log, offset, NOW_MS)
    reference = open_log(new_disk(), DIRECTORY, config)
    aborted, open_since = play(reference, history[:offset])
    assert log.log_end_offset == reference.log_end_offset == offset
    assert log.last_stable_offset == 0
    assert replicated(log).last_stable_offset == min(open_since.values(), default=offset)
    found = [Ended(*each[:3]) for each in log.aborted_transactions(0, max(offset, 1))]
    assert found == aborted


def test_an_abort_in_a_later_segment_is_found_from_an_earlier_one() -> None:
    log = open_log(new_disk(), DIRECTORY, LogConfig(segment_bytes=200))
    append_numbered(log, 0, b"v" * 50, transactional=True)
    for _ in range(6):
        append(log, b"v" * 50)
    end_transaction(log, 7, commit=False)
    assert len(log.segments) > 2
    (found,) = log.aborted_transactions(0, 1)
    assert (found.first_offset, found.last_offset) == (0, 7)
    region = log.read(7, 1000).region
    assert region is not None
    assert [header.is_control for _, header in iter_batch_headers(region.read())] == [True]
