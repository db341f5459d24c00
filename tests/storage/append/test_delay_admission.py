"""How much may wait in a partition: what is charged, what is not, and what is not known yet."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode
from headwater.delay.delay_state import DelayState
from headwater.delay.index.index import DelayIndex
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, new_disk, open_log
from headwater.storage.errors import (
    DelayedLaterError,
    OutOfOrderSequenceError,
    TooMuchWaitsError,
)
from headwater.storage.log_config import NO_DELAYS, DelayMode, LogConfig
from headwater.storage.partition_log import AppendResult, PartitionLog
from headwater.storage.waiting_messages import INDEX_BYTES_EACH, WaitingMessages
from headwater.wire.records import Record, encode_batch

DELAYED = {"headwater-delay": "1m"}
CANCEL = {"headwater-delay": "cancel", "headwater-delayed-offset": "0"}


def config(pending_max_bytes: int) -> LogConfig:
    rules = NO_DELAYS._replace(mode=DelayMode.HEADER, pending_max_bytes=pending_max_bytes)
    return LogConfig(delay=rules)


def batch(*asked: dict[str, str], value: bytes = b"value", **fields: object) -> bytes:
    """A record for each set of headers."""
    return encode_batch(
        [
            Record(
                number,
                NOW_MS,
                None,
                value,
                tuple((name, text.encode()) for name, text in headers.items()),
            )
            for number, headers in enumerate(asked)
        ],
        **fields,  # type: ignore[arg-type]
    )


def by_producer(number: int, *asked: dict[str, str]) -> bytes:
    return batch(*asked, producer_id=7, producer_epoch=0, base_sequence=number)


def append(log: PartitionLog, data: bytes) -> AppendResult:
    return log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)


def fill(log: PartitionLog) -> None:
    """As much waits as may."""
    log.waiting = WaitingMessages()
    log.waiting.add(0, log.config.delay.pending_max_bytes)
    log.waiting.is_complete = True


def test_more_than_may_wait_is_refused() -> None:
    log = open_log(new_disk(), DIRECTORY, config(1000))
    log.waiting = WaitingMessages()
    log.waiting.add(0, 900)
    log.waiting.is_complete = True
    with pytest.raises(TooMuchWaitsError, match=r"delay\.pending\.max\.bytes=1000") as raised:
        append(log, batch(DELAYED))
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
    append(log, batch({}))
    assert not log.has_hidden
    log.waiting.remove(0, 0)
    append(log, batch(DELAYED))
    assert log.has_hidden


def test_what_brings_nothing_that_waits_is_taken_when_nothing_more_may_wait() -> None:
    """A cancellation makes room; dead letters leave their partition by them."""
    log = open_log(new_disk(), DIRECTORY, config(1000))
    fill(log)
    assert append(log, batch(CANCEL, CANCEL)).last_offset == 1
    with pytest.raises(TooMuchWaitsError):
        append(log, batch(CANCEL, DELAYED))


def test_a_producer_that_repeats_a_batch_gets_its_answer_when_nothing_more_may_wait() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, config(1000))
    told = [append(log, by_producer(number, DELAYED)) for number in range(2)]
    fill(log)
    repeated = [append(log, by_producer(number, DELAYED)) for number in range(2)]
    assert [each.base_offset for each in repeated] == [each.base_offset for each in told]
    assert all(each.is_duplicate for each in repeated)
    log.close()
    # Now only the last batch is remembered, and the first is looked for in the log.
    log = open_log(disk, DIRECTORY, config(1000))
    fill(log)
    assert append(log, by_producer(0, DELAYED)).is_duplicate
    with pytest.raises(TooMuchWaitsError):
        append(log, by_producer(2, DELAYED))


@pytest.mark.parametrize("per_batch", [1, 50])
def test_the_smallest_messages_are_charged_what_they_hold(per_batch: int) -> None:
    allowed = 20_000
    disk = new_disk()
    log = open_log(disk, DIRECTORY, config(allowed))
    index, _ = DelayIndex.open(disk, DIRECTORY, NOW_MS)
    state = DelayState(log, index, lambda _key, _message: None, lambda _offset: None)
    log.waiting = state.waiting
    state.waiting.is_complete = True
    with pytest.raises(TooMuchWaitsError):
        while True:
            append(log, batch(*[DELAYED] * per_batch, value=b""))
            state.follow_at_once()
    held = log.size_bytes + state.waiting.count * INDEX_BYTES_EACH
    assert allowed * 0.7 < held < allowed * 1.1
    assert held * 0.9 < state.waiting.held_bytes <= allowed


def test_as_long_as_nobody_has_counted_what_waits_the_log_is_the_measure() -> None:
    """After a restart, or where a new leader has not read its log: it must not let in more."""
    log = open_log(new_disk(), DIRECTORY, config(1000))
    assert log.waiting is None
    assert append(log, by_producer(0, DELAYED)).base_offset == 0
    assert append(log, batch({}, value=bytes(1000))).base_offset == 1
    log.waiting = WaitingMessages()
    for _ in range(2):
        with pytest.raises(DelayedLaterError, match="is being read") as raised:
            append(log, by_producer(1, DELAYED))
        assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    log.waiting.is_complete = True
    assert append(log, by_producer(1, DELAYED)).base_offset == 2


def test_no_batch_overtakes_one_that_has_to_come_again() -> None:
    """A new producer's second batch may arrive when it is known what waits."""
    log = open_log(new_disk(), DIRECTORY, config(1000))
    append(log, batch({}, value=bytes(1000)))
    with pytest.raises(DelayedLaterError):
        append(log, by_producer(0, DELAYED))
    log.waiting = WaitingMessages()
    log.waiting.is_complete = True
    with pytest.raises(OutOfOrderSequenceError):
        append(log, by_producer(1, DELAYED))
    assert [append(log, by_producer(number, DELAYED)).base_offset for number in range(2)] == [1, 2]
