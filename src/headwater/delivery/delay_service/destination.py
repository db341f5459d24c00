"""Where a record of a level topic is to go, as its headers say, and what arrives there.

Of several headers of a name the last one counts, and it alone is taken away: who wants a record to
pass two levels gives it two. What arrives has the due time as its timestamp, so that retention and
readers of event times take it for new; when it was sent is in a header.

A record that says nothing usable goes to the dead letters, whole, with the reason.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.base.errors import InvalidTopicError
from headwater.base.ids import DELAY_TOPIC_PREFIX, PARTITION_MAX, validate_topic_name
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.delay_levels import PARTITION_HEADER, TOPIC_HEADER
from headwater.client.producer.record import HeaderValue

#: When a record was sent, in ms, as delayed records of Headwater's own topics tell it too.
SENT_AT_HEADER: Final = "headwater-sent-at"
#: Where dead letters go, and what they say.
DEAD_TOPIC: Final = f"{DELAY_TOPIC_PREFIX}dead"
REASON_HEADER: Final = "headwater-dead-reason"
#: The place of the record in its level topic: `__delay_30s-0@17`.
PLACE_HEADER: Final = "headwater-dead-from"


class Destination(NamedTuple):
    topic: str
    #: None for the partition that the key, or chance, decides on.
    partition: int | None


class Letter(NamedTuple):
    """What is written for one record."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, HeaderValue]]
    timestamp_ms: int
    #: Why it cannot be delivered; None for what is.
    dead_reason: str | None = None


class UndeliverableError(Exception):
    """A record cannot be forwarded; the message is a sentence for its dead letter."""


def destination_of(record: ConsumerRecord) -> Destination:
    """What the headers say; raises `UndeliverableError`."""
    topic_text = _last(record, TOPIC_HEADER)
    if topic_text is None:
        raise UndeliverableError(f"It has no header {TOPIC_HEADER}.")
    try:
        topic = topic_text.decode()
        validate_topic_name(topic)
    except UnicodeDecodeError:
        raise UndeliverableError(f"Its header {TOPIC_HEADER} is not text.") from None
    except InvalidTopicError as error:
        raise UndeliverableError(str(error)) from None
    number_text = _last(record, PARTITION_HEADER)
    if number_text is None:
        return Destination(topic, None)
    if not (number_text.isdigit() and len(number_text) < 11 and int(number_text) <= PARTITION_MAX):
        raise UndeliverableError(f"Its header {PARTITION_HEADER} is not the number of a partition.")
    return Destination(topic, int(number_text))


def delivery(record: ConsumerRecord, to: Destination, due_ms: int) -> Letter:
    """What arrives."""
    taken = {TOPIC_HEADER, PARTITION_HEADER}
    kept: list[tuple[str, HeaderValue]] = []
    for name, value in reversed(record.headers):
        if name in taken:
            taken.remove(name)
        else:
            kept.append((name, value))
    kept.reverse()
    kept.append((SENT_AT_HEADER, str(record.timestamp)))
    return Letter(to.topic, to.partition, record.key, record.value, kept, due_ms)


def dead_letter(record: ConsumerRecord, reason: str, now_ms: int) -> Letter:
    """The record as it is, with what is wrong about it."""
    headers: list[tuple[str, HeaderValue]] = [
        *record.headers,
        (REASON_HEADER, reason),
        (PLACE_HEADER, place_of(record)),
    ]
    return Letter(DEAD_TOPIC, None, record.key, record.value, headers, now_ms, reason)


def place_of(record: ConsumerRecord) -> str:
    """As people write it."""
    return f"{record.topic}-{record.partition}@{record.offset}"


def size_of(record: ConsumerRecord) -> int:
    """About how much memory a record takes that waits."""
    return (
        _RECORD_BYTES
        + len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(value or b"") for name, value in record.headers)
    )


#: The objects that a record consists of.
_RECORD_BYTES: Final = 200


def _last(record: ConsumerRecord, wanted: str) -> bytes | None:
    for name, value in reversed(record.headers):
        if name == wanted:
            return value or b""
    return None
