"""A station of a message's way: one record of it in one log, and what that says.

A message begins as a record of its topic. If it was delayed, a copy of it comes behind; if a group
could not handle it, the copy is in the group's retry topic, once for each attempt; given up it lies
in a dead-letter topic, and from there it may be sent back. Each of these records is a station, and
its headers tell where it came from. Headers are written by others: what makes no sense is as if it
were not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from headwater.base.durations import parse_duration_ms
from headwater.base.message_id import MessageId
from headwater.delivery.redrive.letters.header_values import number_of, parsed_place, text_of
from headwater.delivery.trace.audit_moments import PlaceMoments
from headwater.wire.delayed import headers as names
from headwater.wire.delayed.retry_topics import DEAD_LETTER_PREFIX, RETRY_PREFIX
from headwater.wire.records import BatchHeader, Record


class Kind(StrEnum):
    """What kind of station it is."""

    #: The record that a producer sent.
    ORIGINAL = "original"
    #: Shown again by a retry topic.
    RETRY = "retry"
    #: In a dead-letter topic.
    LETTER = "dead letter"
    #: Sent back from one.
    SENT_BACK = "sent back"


class TransactionState(StrEnum):
    """What became of the transaction that a record is part of."""

    NONE = "none"
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Station:
    """One record; nothing is known of the batches of old formats."""

    place: MessageId
    record: Record
    header: BatchHeader | None
    transaction: TransactionState = TransactionState.NONE
    #: When the transaction ended, as its marker says.
    ended_ms: int | None = None
    #: The group whose topic it lies in, where that is known from elsewhere.
    topic_group: str | None = None
    #: What `__audit` tells of where it lies.
    moments: PlaceMoments | None = None
    #: The same of the place where it waited before.
    waited: PlaceMoments | None = None

    @property
    def _last(self) -> dict[str, bytes | None]:
        # Of headers with one name the last one holds.
        return dict(self.record.headers)

    @property
    def waited_at(self) -> MessageId | None:
        """Where it lay before it was shown, if it waited: what its producer was told."""
        offset = number_of(self._last.get(names.DELAYED_OFFSET_HEADER))
        if offset is None or names.ORDER_HEADER not in self._last:
            return None
        return self.place._replace(offset=offset)

    @property
    def sent_ms(self) -> int | None:
        """The time that its sender gave it, if it waited."""
        return number_of(self._last.get(names.SENT_AT_HEADER))

    @property
    def asked_delay_ms(self) -> int | None:
        """For how long its sender wanted it to wait, if it said so, from when it was stored."""
        try:
            return parse_duration_ms(text_of(self._last.get(names.DELAY_HEADER)) or "")
        except ValueError:
            return None

    @property
    def origin(self) -> MessageId | None:
        """Where it was read first, by the name that consumers give it."""
        found = parsed_place(self._last.get(names.ORIGIN_HEADER))
        if found is None:
            topic = text_of(self._last.get(names.DLQ_TOPIC_HEADER))
            partition = number_of(self._last.get(names.DLQ_PARTITION_HEADER))
            offset = number_of(self._last.get(names.DLQ_OFFSET_HEADER))
            if topic and partition is not None and offset is not None:
                found = MessageId(topic, partition, offset)
        return found

    @property
    def ids(self) -> tuple[MessageId, ...]:
        """The names that it goes by: where it lies, and where it waited."""
        return (self.place,) if self.waited_at is None else (self.waited_at, self.place)

    @property
    def attempts(self) -> int | None:
        """How often it was handled in vain."""
        attempts = number_of(self._last.get(names.ATTEMPTS_HEADER))
        if attempts is None:
            attempts = number_of(self._last.get(names.DLQ_DELIVERY_COUNT_HEADER))
        return attempts

    @property
    def last_failure_ms(self) -> int | None:
        return number_of(self._last.get(names.LAST_FAILURE_HEADER))

    @property
    def redrives(self) -> int:
        return number_of(self._last.get(names.REDRIVES_HEADER)) or 0

    @property
    def error(self) -> str | None:
        """What went wrong the last time."""
        last = self._last
        message = text_of(last.get(names.ERROR_HEADER) or last.get(names.DEAD_HEADER))
        message = message or text_of(last.get(names.DLQ_MESSAGE_HEADER))
        error_class = text_of(last.get(names.ERROR_CLASS_HEADER))
        if message and error_class and not message.startswith(error_class):
            return f"{error_class}: {message}"
        return message or error_class

    @property
    def group(self) -> str | None:
        """The group whose retry topic or dead-letter topic it is in, as far as that is told."""
        named = text_of(self._last.get(names.DLQ_GROUP_HEADER)) or self.topic_group
        if named:
            return named
        for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
            if self.place.topic.startswith(prefix):
                return self.place.topic.removeprefix(prefix)
        return None

    @property
    def kind(self) -> Kind:
        origin = self.origin
        if names.DLQ_TOPIC_HEADER in self._last:
            return Kind.LETTER
        if origin is None or origin in self.ids:
            return Kind.ORIGINAL
        is_back = self.redrives > 0 and self.attempts is None
        return Kind.SENT_BACK if is_back else Kind.RETRY

    @property
    def turn(self) -> tuple[int, int, int, int]:
        """Sorts the stations of one message in the order in which it came to them."""
        kind = self.kind
        is_back = kind is Kind.SENT_BACK
        rank = 0 if is_back else 2 if kind is Kind.LETTER else 1
        return self.redrives, rank, self.attempts or 0, self.record.timestamp


def parents_of(stations: Sequence[Station]) -> dict[int, int | None]:
    """From which station each came, by place in the list; the first one is where it began.

    A group that could not handle a message sends on the record that it had: the original, or the
    last one that it was shown. A letter that goes to its first topic again is for all groups.
    """
    parents: dict[int, int | None] = {0: None} if stations else {}
    behind = sorted(range(1, len(stations)), key=lambda number: stations[number].turn)
    last_of: dict[str | None, int] = {}
    back = 0
    for number in behind:
        station = stations[number]
        if station.kind is Kind.SENT_BACK:
            letters = [
                other
                for other in behind
                if stations[other].kind is Kind.LETTER
                and stations[other].redrives < station.redrives
            ]
            parents[number] = letters[-1] if letters else back
            back, last_of = number, {}
        else:
            parents[number] = last_of.get(station.group, back)
            last_of[station.group] = number
    return parents
