"""The headers of a dead letter that is written at once, without a retry topic.

Pipelines have no attempts: what cannot be decoded today cannot tomorrow. Their letters have the
headers that brokers give to those of retry topics, in the same words, so that one set of commands
serves all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.durations import LONG_MAX
from headwater.base.message_id import MessageId
from headwater.client.failures.failed_record import DROPPED, ERROR_BYTES_MAX, bounded
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    BATCH_HEADER,
    DLQ_DELIVERY_COUNT_HEADER,
    DLQ_GROUP_HEADER,
    DLQ_MESSAGE_HEADER,
    DLQ_OFFSET_HEADER,
    DLQ_PARTITION_HEADER,
    DLQ_TOPIC_HEADER,
    ERROR_CLASS_HEADER,
    ERROR_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
    ORIGIN_HEADER,
    QUERY_HEADER,
    WANTED_PARTITION_HEADER,
    WANTED_TOPIC_HEADER,
)
from headwater.wire.records import Header

#: How the headers begin that tell of the pipeline whose source could not be read.
PIPELINE_PREFIX: Final = "headwater.dead-letter."
_FAMILY: Final = "__dlq.errors."
#: What is told anew, or counted up.
_OURS: Final = DROPPED | {
    ORIGIN_HEADER,
    ATTEMPTS_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
}


class Failure(NamedTuple):
    """What became of a record: who could not handle it, why and when."""

    group: str
    error: str
    error_class: str
    failed_ms: int


class Wanted(NamedTuple):
    """Of a record that could not be written: where it should have gone, and who wrote it."""

    #: None if it did not say.
    topic: str | None
    partition: int | None
    query: str
    batch: int


def letter_headers(
    headers: Iterable[Header],
    failure: Failure,
    *,
    place: MessageId | None = None,
    wanted: Wanted | None = None,
) -> list[Header]:
    """The headers that a record had, and behind them those of a dead letter.

    One that says where it was read first keeps that name, and otherwise has that of `place`. If
    there is neither, the letter names only the topic that the record was wanted in.
    """
    kept: list[Header] = []
    before: dict[str, bytes] = {}
    for name, value in headers:
        if name in _OURS:
            before[name] = value or b""
        elif not name.startswith(_FAMILY):
            kept.append((name, value))
    origin = _origin(before.get(ORIGIN_HEADER)) or place
    attempts = str((_number(before.get(ATTEMPTS_HEADER)) or 0) + 1).encode()
    first_ms = _number(before.get(FIRST_FAILURE_HEADER))
    message = bounded(failure.error, ERROR_BYTES_MAX)
    if origin is not None:
        kept.append((ORIGIN_HEADER, str(origin).encode()))
    kept += [
        (ATTEMPTS_HEADER, attempts),
        (FIRST_FAILURE_HEADER, _text(failure.failed_ms if first_ms is None else first_ms)),
        (LAST_FAILURE_HEADER, _text(failure.failed_ms)),
        (ERROR_HEADER, message),
        (ERROR_CLASS_HEADER, bounded(failure.error_class, ERROR_BYTES_MAX)),
    ]
    if wanted is not None:
        kept += _wanted_headers(wanted)
    if origin is None:
        topic = wanted.topic if wanted is not None else None
        kept.append((DLQ_TOPIC_HEADER, bounded(topic or "", ERROR_BYTES_MAX)))
    else:
        kept += [
            (DLQ_TOPIC_HEADER, origin.topic.encode()),
            (DLQ_PARTITION_HEADER, _text(origin.partition)),
            (DLQ_OFFSET_HEADER, _text(origin.offset)),
        ]
    kept += [
        (DLQ_GROUP_HEADER, failure.group.encode()),
        (DLQ_DELIVERY_COUNT_HEADER, attempts),
        (DLQ_MESSAGE_HEADER, message),
    ]
    return kept


def _wanted_headers(wanted: Wanted) -> list[Header]:
    found: list[Header] = []
    if wanted.topic is not None:
        found.append((WANTED_TOPIC_HEADER, bounded(wanted.topic, ERROR_BYTES_MAX)))
    if wanted.partition is not None:
        found.append((WANTED_PARTITION_HEADER, _text(wanted.partition)))
    return [*found, (QUERY_HEADER, wanted.query.encode()), (BATCH_HEADER, _text(wanted.batch))]


def _text(number: int) -> bytes:
    return str(number).encode()


def _number(value: bytes | None) -> int | None:
    """What a header says that anybody may have written."""
    if not value or not value.isdigit() or len(value) > len(str(LONG_MAX)):
        return None
    return int(value)


def _origin(value: bytes | None) -> MessageId | None:
    if value is None:
        return None
    try:
        return MessageId.parse(value.decode("ascii", "replace"))
    except ValueError:
        return None
