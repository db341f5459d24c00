"""What can be asked and told about messages that wait in a partition."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from headwater.wire.delayed.delayed_batch import NONE


class WaitingMessage(NamedTuple):
    """A message that waits for its time."""

    #: The offset that its producer was told: with the partition it is the message's id.
    offset: int
    due_ms: int
    sent_ms: int
    #: From when on it is not delivered any more; -1 if there is no such time.
    expires_ms: int
    #: The id that its sender gave it, empty if it did not.
    sender_id: bytes
    key: bytes | None
    size_bytes: int


class MessageName(NamedTuple):
    """How a message is named: by its offset, or by the id that its sender gave it."""

    offset: int = NONE
    sender_id: bytes = b""


class ChangeKind(IntEnum):
    CANCEL = 0
    RESCHEDULE = 1
    #: Deliver it now.
    NOW = 2


class DelayChange(NamedTuple):
    kind: ChangeKind
    name: MessageName
    due_ms: int = NONE


class Changed(NamedTuple):
    """What became of a change: the offsets that it concerned, and where it stands in the log."""

    #: The messages that waited under this name; empty if none did, and then nothing was written.
    offsets: tuple[int, ...]
    #: All in front of this offset must be safe before anybody is told.
    end_offset: int


class DelayCounts(NamedTuple):
    """Of one partition; what was counted counts from the start of this broker."""

    waiting: int
    waiting_bytes: int
    due_within_minute: int
    #: When the message that is due next is due, -1 if nothing waits.
    next_due_ms: int
    delivered: int
    cancelled: int
    expired: int
    #: Names in cancels and reschedules that nothing waited under.
    unknown: int
    rolled_bytes: int
    index_bytes: int
    #: Messages that DeleteRecords took with what lay before its offset.
    deleted: int = 0


class WaitingQuestions(Protocol):
    """Who answers for a partition."""

    def find(self, name: MessageName) -> list[WaitingMessage]:
        """What waits under a name."""
        ...

    async def between(
        self, from_ms: int, to_ms: int, limit: int, skip: int = 0
    ) -> list[WaitingMessage]:
        """What waits and is due from one time to another, both included, in order.

        The first `skip` of these are left out, and do not count towards the limit.
        """
        ...

    def counts(self, now_ms: int) -> DelayCounts: ...

    def change(self, changes: Sequence[DelayChange], *, acks: int, now_ms: int) -> list[Changed]:
        """Write changes into the log; whether they are safe is asked afterwards."""
        ...


class NothingWaits:
    """Answers for a partition that takes no delays."""

    def find(self, name: MessageName) -> list[WaitingMessage]:
        return []

    async def between(
        self, from_ms: int, to_ms: int, limit: int, skip: int = 0
    ) -> list[WaitingMessage]:
        return []

    def counts(self, now_ms: int) -> DelayCounts:
        return DelayCounts(0, 0, 0, NONE, 0, 0, 0, 0, 0, 0)

    def change(self, changes: Sequence[DelayChange], *, acks: int, now_ms: int) -> list[Changed]:
        return [Changed((), NONE) for _ in changes]
