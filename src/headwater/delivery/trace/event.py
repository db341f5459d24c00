"""What happened to a message, where and when, and how exactly the time is known.

Names of events and sources never change: programs read them in `headwater trace --json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from headwater.base.message_id import MessageId
from headwater.client.tracing.trace_step import Detail


class What(StrEnum):
    """What happened, in the order in which it happens at one place."""

    #: The time that the record carries, whoever gave it that.
    CREATED = "created"
    SENT = "sent"
    RETRIED = "retried"
    APPENDED = "appended"
    LEADER_CHANGED = "leader_changed"
    REPLICATED = "replicated"
    ACKNOWLEDGED = "acknowledged"
    #: Its producer gave it up.
    FAILED = "failed"
    TRANSACTION_COMMITTED = "transaction_committed"
    TRANSACTION_ABORTED = "transaction_aborted"
    #: A delayed message, or one that is tried again, is shown: its copy was appended.
    DELIVERED = "delivered"
    #: It was given up: a record of a dead-letter topic.
    DEAD_LETTER = "dead_letter"
    #: It was sent back from a dead-letter topic.
    SENT_BACK = "sent_back"
    FETCHED = "fetched"
    HANDLED = "handled"
    NOT_HANDLED = "not_handled"
    #: A group sent it to its retry topic, or gave it up.
    SENT_ON = "sent_on"
    COMMITTED = "committed"
    #: The committed offset of a group passed it.
    PASSED = "passed"
    #: A group committed an offset in front of it again.
    WENT_BACK = "went_back"
    #: A step that a later version writes.
    OTHER = "other"


class Source(StrEnum):
    """Who says so."""

    #: The record and the header of its batch.
    RECORD = "record"
    #: Headers that brokers and consumers put on records that waited or failed.
    HEADERS = "headers"
    #: What brokers publish once a minute, in `__audit`.
    AUDIT = "audit"
    #: What clients wrote, in `__trace`.
    WRITTEN = "written"


#: How exact a time is of which nobody knows more than that it was over then.
AT_THE_LATEST: Final = None

#: The clocks of those that have no other name.
PRODUCER_CLOCK: Final = "the producer"
BROKERS_CLOCK: Final = "the brokers"


@dataclass(frozen=True, slots=True)
class Event:
    """At `time_ms` by its clock, or up to `within_ms` before that."""

    what: What
    time_ms: int
    #: 0 is exact; `AT_THE_LATEST` if it is not known how much earlier it was.
    within_ms: int | None
    source: Source
    clock: str
    #: Of which station of the message's way it tells: see `Station`.
    station: int = 0
    place: MessageId | None = None
    group: str | None = None
    host: str | None = None
    client_id: str | None = None
    member: str | None = None
    attempt: int | None = None
    error: str | None = None
    #: More of what happened, in words that follow the event's own.
    text: str = ""
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def earliest_ms(self) -> int | None:
        """None if that is not known."""
        return None if self.within_ms is None else self.time_ms - self.within_ms
