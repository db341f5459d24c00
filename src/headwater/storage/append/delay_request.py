"""What a record says about its own delivery, by its headers or by its time.

    headwater-delay       30s, 5m, 250ms, or milliseconds; or `cancel`
    headwater-deliver-at  the time in ms since 1970
    headwater-delay-id    an id of the sender's, by which the message can be cancelled
    headwater-expire-at   the time in ms from which on it is not delivered any more
    headwater-delayed-offset   of a cancellation: the offset that the message got, or its whole id

What `delay.mode` of its topic lets count is decided here, and how long a delay may be. A time in
the past is due at once. A whole id that is of another partition names nothing that waits in this
one: its offset alone would be somebody else's message.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from headwater.base.durations import LONG_MAX, parse_duration_ms
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.base.printable import shortened
from headwater.storage.log_config import DelayMode, DelayRules
from headwater.wire.delayed.attempts import last_header
from headwater.wire.delayed.delayed_batch import DUE_MS_MAX, NONE
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    DELAY_HEADER,
    DELAY_ID_HEADER,
    DELAYED_OFFSET_HEADER,
    DELIVER_AT_HEADER,
    EXPIRE_AT_HEADER,
    ORDER_HEADER,
    ORIGIN_HEADER,
    SENT_AT_HEADER,
)
from headwater.wire.records import Header, InvalidRecordError, Record

CANCEL: Final = b"cancel"

#: What the names of both headers that ask for a delay have in common: where it is not found in the
#: bytes of a batch, none of its records asks.
ASKING_BYTES: Final = b"headwater-de"

_SENDER_ID_BYTES_MAX: Final = 256
#: No topic's name is so long that an id would be longer.
_ID_LENGTH_MAX: Final = 300


class DelayRequest(NamedTuple):
    """What one record asks for; nothing, if `due_ms` is None and it cancels nothing."""

    due_ms: int | None = None
    expires_ms: int = NONE
    sender_id: bytes = b""
    is_cancel: bool = False
    #: What a cancellation names, if not a sender's id; `NONE` if that cannot be here.
    original: int = NONE


NOTHING_ASKED: Final = DelayRequest()

#: Of these a record that failed has one at least: it says where it was read, or came as a copy.
_OF_FAILED: Final = frozenset({ORIGIN_HEADER, ATTEMPTS_HEADER, SENT_AT_HEADER, ORDER_HEADER})


def read_delay_request(
    record: Record, partition: TopicPartition, rules: DelayRules, now_ms: int
) -> DelayRequest:
    """What a record asks for at `now_ms`; ValueError, with a sentence, if it cannot be had."""
    if rules.mode is DelayMode.TIMESTAMP:
        if record.timestamp <= now_ms:
            return NOTHING_ASKED
        return _request(record.headers, record.timestamp - now_ms, rules, now_ms)
    delay = deliver_at = None
    for name, value in record.headers:
        if name == DELAY_HEADER:
            delay = value or b""
        elif name == DELIVER_AT_HEADER:
            deliver_at = value or b""
    if delay is None and deliver_at is None:
        return NOTHING_ASKED
    if rules.mode is DelayMode.RETRY and not _cancels_there(record.headers):
        # Whatever it once asked for, it has had.
        return NOTHING_ASKED
    if delay == CANCEL:
        return _cancellation(record.headers, partition)
    if delay is not None and deliver_at is not None:
        raise ValueError(f"It has both {DELAY_HEADER} and {DELIVER_AT_HEADER}.")
    if delay is not None:
        delay_ms = parse_duration_ms(_text(DELAY_HEADER, delay))
    else:
        delay_ms = max(_number(DELIVER_AT_HEADER, deliver_at) - now_ms, 0)
    return _request(record.headers, delay_ms, rules, now_ms)


def _request(
    headers: tuple[Header, ...], delay_ms: int, rules: DelayRules, now_ms: int
) -> DelayRequest:
    if delay_ms > rules.max_ms:
        raise ValueError(f"It asks for {delay_ms} ms, and delay.max.ms is {rules.max_ms}.")
    if rules.mode is DelayMode.LEVELS and delay_ms > 0:
        levels_ms = rules.levels_ms
        number = bisect_left(levels_ms, delay_ms)
        if number == len(levels_ms):
            raise ValueError(
                f"It asks for {delay_ms} ms, and the longest of delay.levels is {levels_ms[-1]}."
            )
        delay_ms = levels_ms[number]
    if now_ms + delay_ms > DUE_MS_MAX:
        raise ValueError(f"It asks for {delay_ms} ms, and there is no time so late.")
    expires = last_header(headers, EXPIRE_AT_HEADER)
    expires_ms = NONE if expires is None else _number(EXPIRE_AT_HEADER, expires)
    return DelayRequest(now_ms + delay_ms, expires_ms, _sender_id(headers))


def _cancels_there(headers: tuple[Header, ...]) -> bool:
    """Whether a record that comes to a retry topic is meant to cancel another.

    One that failed comes with all that it had, and had it asked to cancel something, that was long
    ago: taken for a cancellation now, it would be lost. What waits there has no ids of senders, so
    a cancellation names its message by the offset; and it has never been read anywhere.
    """
    names = {name for name, _ in headers}
    return DELAYED_OFFSET_HEADER in names and names.isdisjoint(_OF_FAILED)


def _cancellation(headers: tuple[Header, ...], partition: TopicPartition) -> DelayRequest:
    sender_id = _sender_id(headers)
    offset = last_header(headers, DELAYED_OFFSET_HEADER)
    if (offset is None) == (not sender_id):
        raise ValueError(
            f"A cancellation names its message by {DELAY_ID_HEADER} or by {DELAYED_OFFSET_HEADER}."
        )
    original = NONE if offset is None else _original(offset, partition)
    return DelayRequest(sender_id=sender_id, is_cancel=True, original=original)


def _original(value: bytes, partition: TopicPartition) -> int:
    """The offset that a cancellation gives as such, or in a message's whole id."""
    if b"@" not in value:
        return _number(DELAYED_OFFSET_HEADER, value)
    named = MessageId.parse(shortened(_text(DELAYED_OFFSET_HEADER, value), _ID_LENGTH_MAX))
    return named.offset if named.topic_partition == partition else NONE


def _sender_id(headers: tuple[Header, ...]) -> bytes:
    sender_id = last_header(headers, DELAY_ID_HEADER) or b""
    if len(sender_id) > _SENDER_ID_BYTES_MAX:
        raise ValueError(
            f"Its {DELAY_ID_HEADER} has {len(sender_id)} bytes, more than {_SENDER_ID_BYTES_MAX}."
        )
    return sender_id


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"Its {name} is no text.") from None


def _number(name: str, value: bytes | None) -> int:
    text = _text(name, value or b"")
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > LONG_MAX:
        raise ValueError(
            f"Its {name} is {shortened(text)!r}, and must be a number that is not negative."
        )
    return int(text)


def refusal(sentence: str, number: int) -> InvalidRecordError:
    """What the producer of a record that asks for too much is told."""
    return InvalidRecordError(
        f"Record {number} of the batch cannot be delayed. {sentence}", record_numbers=(number,)
    )
