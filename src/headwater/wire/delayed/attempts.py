"""How often a record has failed, as its headers tell, and what they say of the next attempt.

Whoever keeps records that failed counts here: the broker of a retry topic, and the retry service
beside a cluster that has none. So both write the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.base.durations import LONG_MAX
from headwater.base.message_id import MessageId
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    DEAD_HEADER,
    DELAYED_OFFSET_HEADER,
    DLQ_DELIVERY_COUNT_HEADER,
    DLQ_GROUP_HEADER,
    DLQ_MESSAGE_HEADER,
    DLQ_OFFSET_HEADER,
    DLQ_PARTITION_HEADER,
    DLQ_TOPIC_HEADER,
    ERROR_CLASS_HEADER,
    ERROR_HEADER,
    FIRST_ERROR_CLASS_HEADER,
    FIRST_ERROR_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
    ORDER_HEADER,
    ORIGIN_HEADER,
    RETRY_AFTER_HEADER,
    SENT_AT_HEADER,
)
from headwater.wire.records.record import Header

#: A number that nobody reaches, and that a header has room for.
_ATTEMPTS_MAX: Final = 10**9
#: What is written anew each time round, and what the last delivery has left behind.
_REPLACED: Final = frozenset(
    {
        ATTEMPTS_HEADER,
        FIRST_FAILURE_HEADER,
        LAST_FAILURE_HEADER,
        RETRY_AFTER_HEADER,
        SENT_AT_HEADER,
        DELAYED_OFFSET_HEADER,
        ORDER_HEADER,
    }
)
#: What is kept of the first failure, and where it stands when that is the last one too.
_FIRST_ERROR: Final = {
    FIRST_ERROR_HEADER: ERROR_HEADER,
    FIRST_ERROR_CLASS_HEADER: ERROR_CLASS_HEADER,
}
#: A record grows by no more than that for each of them.
_FIRST_ERROR_BYTES_MAX: Final = 512
_FAMILY: Final = "__dlq.errors."


class Failure(NamedTuple):
    """A record that has failed once more."""

    #: How often, with this time.
    attempts: int
    #: Whether it says itself that there is no use in another attempt.
    is_dead: bool
    #: After which time it wants to be tried again, as text; None for what the policy says.
    after: bytes | None
    #: All that it has from now on.
    headers: tuple[Header, ...]


def count_failure(headers: tuple[Header, ...], now_ms: int) -> Failure:
    """Count one failure more; ValueError, with a sentence, if the headers lie."""
    attempts = _number(headers, ATTEMPTS_HEADER, _ATTEMPTS_MAX, 0) + 1
    first_ms = _number(headers, FIRST_FAILURE_HEADER, LONG_MAX, now_ms)
    origin = last_header(headers, ORIGIN_HEADER)
    if origin is not None:
        MessageId.parse(origin.decode("ascii", "replace"))
    kept = [
        header for header in headers if header[0] not in _REPLACED and header[0] not in _FIRST_ERROR
    ]
    kept.append((ATTEMPTS_HEADER, str(attempts).encode()))
    kept.append((FIRST_FAILURE_HEADER, str(first_ms).encode()))
    kept.append((LAST_FAILURE_HEADER, str(now_ms).encode()))
    kept += _first_error(headers)
    return Failure(
        attempts,
        last_header(headers, DEAD_HEADER) is not None,
        last_header(headers, RETRY_AFTER_HEADER),
        tuple(kept),
    )


def dead_letter_headers(headers: tuple[Header, ...], group: str) -> tuple[Header, ...]:
    """The headers of a dead letter: those that it had, its origin among them, and Kafka's own."""
    texts = {name: value or b"" for name, value in headers}
    origin = MessageId.parse(texts[ORIGIN_HEADER].decode("ascii", "replace"))
    reason = texts.get(DEAD_HEADER) or texts.get(ERROR_HEADER) or b"All attempts are used up."
    return (
        *(header for header in headers if not header[0].startswith(_FAMILY)),
        (DLQ_TOPIC_HEADER, origin.topic.encode()),
        (DLQ_PARTITION_HEADER, str(origin.partition).encode()),
        (DLQ_OFFSET_HEADER, str(origin.offset).encode()),
        (DLQ_GROUP_HEADER, group.encode()),
        (DLQ_DELIVERY_COUNT_HEADER, texts.get(ATTEMPTS_HEADER, b"0")),
        (DLQ_MESSAGE_HEADER, reason),
    )


def _first_error(headers: tuple[Header, ...]) -> list[Header]:
    """What is known of the first failure, which is this one if none is told of."""
    is_first = last_header(headers, FIRST_FAILURE_HEADER) is None
    found: list[Header] = []
    for first, last in _FIRST_ERROR.items():
        value = last_header(headers, last if is_first else first)
        if value is not None:
            found.append((first, _shortened(value)))
    return found


def _shortened(value: bytes) -> bytes:
    if len(value) <= _FIRST_ERROR_BYTES_MAX:
        return value
    # A character that was cut in two is left out.
    return value[:_FIRST_ERROR_BYTES_MAX].decode(errors="ignore").encode()


def last_header(headers: tuple[Header, ...], name: str) -> bytes | None:
    """Of several headers of a name, the last one holds."""
    for key, value in reversed(headers):
        if key == name:
            return value or b""
    return None


def _number(headers: tuple[Header, ...], name: str, most: int, without: int) -> int:
    value = last_header(headers, name)
    if value is None:
        return without
    if not (value.isdigit() and len(value) <= 19 and int(value) <= most):
        raise ValueError(f"Its {name} is {value[:32]!r}, and must be a number up to {most}.")
    return int(value)
