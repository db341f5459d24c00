"""What a letter becomes when it is sent back: as the record was before it failed.

Key, value and headers go as they were, without what all families tell of failures. Two headers stay
with the message on its whole way, and no edit takes them off: its name, and how often it was sent
back, by which loops are found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from headwater.client.failures.letter_headers import PIPELINE_PREFIX
from headwater.delivery.redrive.letters.families import (
    CONNECT_PREFIX,
    KAFKA_PREFIX,
    SPRING_PREFIXES,
)
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.tasks.plan import Edits
from headwater.wire.delayed import headers as ours
from headwater.wire.records import Header

_DROPPED: Final = frozenset(
    {
        ours.ATTEMPTS_HEADER,
        ours.FIRST_FAILURE_HEADER,
        ours.FIRST_ERROR_HEADER,
        ours.FIRST_ERROR_CLASS_HEADER,
        ours.LAST_FAILURE_HEADER,
        ours.ERROR_HEADER,
        ours.ERROR_CLASS_HEADER,
        ours.ERROR_STACK_HEADER,
        ours.RETRY_AFTER_HEADER,
        ours.DEAD_HEADER,
        ours.SENT_AT_HEADER,
        ours.DELAYED_OFFSET_HEADER,
        ours.ORDER_HEADER,
        # Its delay is over: it was delivered before it failed.
        ours.DELAY_HEADER,
        ours.DELIVER_AT_HEADER,
        ours.DELAY_ID_HEADER,
        ours.EXPIRE_AT_HEADER,
        # Of a row that could not be written: it tells of that failure, and not of the row.
        ours.WANTED_TOPIC_HEADER,
        ours.WANTED_PARTITION_HEADER,
        ours.QUERY_HEADER,
        ours.BATCH_HEADER,
    }
)
_PREFIXES: Final = (
    KAFKA_PREFIX,
    CONNECT_PREFIX,
    *SPRING_PREFIXES,
    "springDeserializerException",
    PIPELINE_PREFIX,
)
_OURS_ALWAYS: Final = frozenset({ours.ORIGIN_HEADER, ours.REDRIVES_HEADER})
#: It comes back to its group at once, and not after the delay of a first failure.
_AT_ONCE: Final = (ours.RETRY_AFTER_HEADER, b"0ms")


class Outgoing(NamedTuple):
    """What is sent. An edit returns it changed: `outgoing._replace(value=...)`."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    #: None for that of the key.
    partition: int | None = None


#: Changes what is sent, or returns None for a letter that shall stay.
EditFunction: TypeAlias = Callable[[Outgoing, Letter], Outgoing | None]


def outgoing_of(letter: Letter, topic: str, partition: int | None) -> Outgoing:
    """The record as it was before it failed, bound for a topic."""
    record = letter.record
    headers = tuple(
        header
        for header in record.headers
        if header[0] not in _DROPPED and not header[0].startswith(_PREFIXES)
    )
    return Outgoing(topic, record.key, record.value, headers, partition)


def edited(outgoing: Outgoing, edits: Edits) -> Outgoing:
    key = outgoing.key if edits.key is None else edits.key
    value = outgoing.value if edits.value is None else edits.value
    if value is not None:
        for old, new in edits.replaced:
            value = value.replace(old, new)
    headers = outgoing.headers
    if edits.headers or edits.removed_headers:
        replaced = {*edits.removed_headers, *(name for name, _ in edits.headers)}
        kept = [header for header in headers if header[0] not in replaced]
        headers = (*kept, *edits.headers)
    return outgoing._replace(key=key, value=value, headers=headers)


def finished(outgoing: Outgoing, letter: Letter, *, is_retried: bool) -> Outgoing:
    """With the headers that stay with the message, whatever edits did to it."""
    headers = [header for header in outgoing.headers if header[0] not in _OURS_ALWAYS]
    if letter.origin is not None:
        headers.append((ours.ORIGIN_HEADER, str(letter.origin).encode()))
    headers.append((ours.REDRIVES_HEADER, str(letter.redrives + 1).encode()))
    if is_retried:
        headers.append(_AT_ONCE)
    # The partition was that of the old key.
    is_moved = outgoing.key != letter.record.key
    partition = None if is_moved else outgoing.partition
    return outgoing._replace(headers=tuple(headers), partition=partition)
