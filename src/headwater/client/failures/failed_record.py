"""A record that could not be handled, as it is sent to the retry topic of its group.

It goes as it came: key, value and all headers, with a few behind them that say where it was read
first, what went wrong, and what its handler wants. How often it failed, and when, is the broker's
to count. No header of ours is there twice, since nobody could say which of them holds.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Final

from headwater.base.durations import show_duration
from headwater.base.message_id import MessageId
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.verdicts import AfterLike, DeadLetter, Retry, after_ms_of
from headwater.client.producer.record import ProducerRecord
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    BATCH_HEADER,
    DEAD_HEADER,
    DELAYED_OFFSET_HEADER,
    ERROR_CLASS_HEADER,
    ERROR_HEADER,
    ERROR_STACK_HEADER,
    FIRST_ERROR_CLASS_HEADER,
    FIRST_ERROR_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
    ORDER_HEADER,
    ORIGIN_HEADER,
    QUERY_HEADER,
    REDRIVES_HEADER,
    RETRY_AFTER_HEADER,
    SENT_AT_HEADER,
    WANTED_PARTITION_HEADER,
    WANTED_TOPIC_HEADER,
)
from headwater.wire.delayed.retry_topics import queue_for, retry_topic
from headwater.wire.records import Header

ERROR_BYTES_MAX: Final = 1024
STACK_BYTES_MAX: Final = 4096
#: So many calls of the stack are told, those nearest to the error.
_STACK_CALLS: Final = 12

#: What was said of the attempt before, or by the broker that delivered the record.
DROPPED: Final = frozenset(
    {
        ERROR_HEADER,
        ERROR_CLASS_HEADER,
        ERROR_STACK_HEADER,
        RETRY_AFTER_HEADER,
        DEAD_HEADER,
        SENT_AT_HEADER,
        DELAYED_OFFSET_HEADER,
        ORDER_HEADER,
        WANTED_TOPIC_HEADER,
        WANTED_PARTITION_HEADER,
        QUERY_HEADER,
        BATCH_HEADER,
    }
)
#: What goes round with a record. A text that is no number would have the record refused.
_NUMBERS: Final = frozenset(
    {ATTEMPTS_HEADER, FIRST_FAILURE_HEADER, LAST_FAILURE_HEADER, REDRIVES_HEADER}
)
_TEXTS: Final = frozenset({FIRST_ERROR_HEADER, FIRST_ERROR_CLASS_HEADER})
#: More than a number of 64 bits has.
_DIGITS_MAX: Final = 19


def retry_record(
    record: ConsumerRecord,
    error: BaseException | str,
    *,
    group: str,
    after: AfterLike | None = None,
    queues_ms: Sequence[int] = (),
    failure_count: int = 1,
) -> ProducerRecord:
    """What to produce so that the record is tried again; at once a dead letter if that was raised.

    `after` is when; without it the error says so, if it is a `Retry`, or else the topic's policy.
    `queues_ms` are the delays of a group that has a queue for each, by attempt. It has failed
    `failure_count` times since it was read, of which the broker counts the last one.
    """
    if isinstance(error, DeadLetter):
        return dead_record(record, error, group=group, queues_ms=queues_ms)
    after_ms = error.after_ms if isinstance(error, Retry) and after is None else None
    if after is not None:
        after_ms = after_ms_of(after)
    headers = _headers(record, error, failure_count)
    if after_ms is not None:
        headers.append((RETRY_AFTER_HEADER, show_duration(after_ms).encode()))
    return _produced(record, headers, group, queues_ms)


def dead_record(
    record: ConsumerRecord,
    error: BaseException | str,
    *,
    group: str,
    reason: str | None = None,
    queues_ms: Sequence[int] = (),
    failure_count: int = 1,
) -> ProducerRecord:
    """What to produce so that the broker makes a dead letter of the record at once.

    It has failed `failure_count` times since it was read, of which the broker counts the last one.
    """
    headers = _headers(record, error, failure_count)
    told = _message(error) if reason is None else reason
    headers.append((DEAD_HEADER, bounded(told, ERROR_BYTES_MAX)))
    return _produced(record, headers, group, queues_ms)


def _produced(
    record: ConsumerRecord, headers: list[Header], group: str, queues_ms: Sequence[int]
) -> ProducerRecord:
    topic = queue_for(group, queues_ms, headers) if queues_ms else retry_topic(group)
    return ProducerRecord(topic, record.value, record.key, headers=tuple(headers))


def origin_of(record: ConsumerRecord) -> MessageId:
    """Where the record was read first: what its header says, or where it is."""
    value = origin_value(record.headers)
    if value is not None:
        try:
            return MessageId.parse(value.decode("ascii", "replace"))
        except ValueError:
            pass
    return MessageId(record.topic, record.partition, record.offset)


def origin_value(headers: tuple[Header, ...]) -> bytes | None:
    """What the header says; of several, the last one holds."""
    for name, value in reversed(headers):
        if name == ORIGIN_HEADER:
            return value
    return None


def _headers(
    record: ConsumerRecord, error: BaseException | str, failure_count: int = 1
) -> list[Header]:
    ours: dict[str, bytes] = {}
    headers: list[Header] = []
    for name, value in record.headers:
        if name in _NUMBERS:
            if value is not None and value.isdigit() and len(value) <= _DIGITS_MAX:
                ours[name] = value
        elif name in _TEXTS:
            ours[name] = value or b""
        elif name not in DROPPED and name != ORIGIN_HEADER:
            headers.append((name, value))
    if failure_count > 1:
        ours[ATTEMPTS_HEADER] = b"%d" % (int(ours.get(ATTEMPTS_HEADER, b"0")) + failure_count - 1)
    headers += ours.items()
    headers.append((ORIGIN_HEADER, str(origin_of(record)).encode()))
    headers.append((ERROR_HEADER, bounded(_message(error), ERROR_BYTES_MAX)))
    if isinstance(error, BaseException):
        headers.append((ERROR_CLASS_HEADER, bounded(_class_name(error), ERROR_BYTES_MAX)))
        stack = _stack(error)
        if stack:
            headers.append((ERROR_STACK_HEADER, _bounded_end(stack, STACK_BYTES_MAX)))
    return headers


def _message(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    try:
        return str(error) or type(error).__name__
    except Exception:
        # An error that cannot be told must not keep its record from being sent on.
        return type(error).__name__


def _class_name(error: BaseException) -> str:
    kind = type(error)
    is_builtin = kind.__module__ == "builtins"
    return kind.__qualname__ if is_builtin else f"{kind.__module__}.{kind.__qualname__}"


def _stack(error: BaseException) -> str:
    """The calls that led to it, the innermost last."""
    calls = traceback.extract_tb(error.__traceback__, limit=-_STACK_CALLS)
    return "".join(traceback.format_list(calls))


def bounded(text: str, bytes_max: int) -> bytes:
    """The text, or as much of it as may be in a header."""
    whole = text.encode("utf-8", "replace")
    # A character that was cut in two goes as a whole.
    return whole if len(whole) <= bytes_max else whole[:bytes_max].decode(errors="ignore").encode()


def _bounded_end(text: str, bytes_max: int) -> bytes:
    whole = text.encode("utf-8", "replace")
    return whole if len(whole) <= bytes_max else whole[-bytes_max:].decode(errors="ignore").encode()
