"""Whether a producer's delayed batch may be written: how much may wait, and what a breaker says.

It is asked behind the look for duplicates: what is in the log already needs no room. And only what
comes to wait anew is charged: a cancellation makes room, and is what empties a log that is full.

What a broker has not read since it started it cannot count. But no more waits than the log holds,
which will do nearly always; where it does not, producers try again until the count is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.storage.errors import BreakerOpenError, TooMuchWaitsError, WaitingUnknownError
from headwater.storage.waiting_messages import INDEX_BYTES_EACH, log_bytes_of
from headwater.wire.delayed.delayed_batch import (
    NEVER_MS,
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
)
from headwater.wire.records import BatchHeader, Buffer

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog


def check_admission(log: PartitionLog, batch: Buffer, header: BatchHeader, now_ms: int) -> None:
    """Raise if a client's delayed batch may not be written now.

    The reason is a `TooMuchWaitsError`, a `WaitingUnknownError` or a `BreakerOpenError`.
    """
    room_bytes = log.config.delay.pending_max_bytes - _held_bytes(log)
    is_close = header.size_bytes + header.record_count * INDEX_BYTES_EACH > room_bytes
    is_open = _is_breaker_open(log, now_ms)
    if not is_close and not is_open:
        return
    messages = [
        each
        for each in decode_delayed_batch(batch, check_crc=False)
        if each.kind is DelayedKind.MESSAGE
    ]
    if is_close:
        _check_room(log, messages, room_bytes)
    if is_open and any(each.due_ms >= NEVER_MS for each in messages):
        raise BreakerOpenError(
            f"The breaker of {log.partition} is open, for too many records were given up "
            "there lately: more are refused until it closes."
        )


def _held_bytes(log: PartitionLog) -> int:
    """What the messages hold that wait; at most, as long as nobody has counted them."""
    waiting = log.waiting
    if waiting is not None and waiting.is_complete:
        return waiting.held_bytes
    offset_count = log.log_end_offset - log.segments[0].base_offset
    return log.size_bytes + offset_count * INDEX_BYTES_EACH


def _check_room(log: PartitionLog, messages: list[DelayedRecord], room_bytes: int) -> None:
    charged_bytes = sum(log_bytes_of(messages)) + len(messages) * INDEX_BYTES_EACH
    if not messages or charged_bytes <= room_bytes:
        return
    allowed_bytes = log.config.delay.pending_max_bytes
    if log.waiting is None or not log.waiting.is_complete:
        raise WaitingUnknownError(
            f"What waits in {log.partition} is being read, and may be as much as "
            f"delay.pending.max.bytes={allowed_bytes} allows."
        )
    raise TooMuchWaitsError(
        f"{allowed_bytes - room_bytes} bytes wait in {log.partition}, and with this batch it were "
        f"more than delay.pending.max.bytes={allowed_bytes}."
    )


def _is_breaker_open(log: PartitionLog, now_ms: int) -> bool:
    rules = log.config.delay.retry.breaker
    return rules.is_pausing and log.breaker is not None and log.breaker.is_open(rules, now_ms)
