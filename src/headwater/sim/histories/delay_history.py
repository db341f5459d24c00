"""What clients asked of delayed deliveries in a simulation, what they were told, and the checks.

Every message has a value of its own. What a checker is given is what became visible in a partition,
in order, as somebody saw it who missed nothing; and the model of the partition's log, which says
which messages were cancelled there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.histories.transaction_history import Ending


class VisibleRecord(NamedTuple):
    """What a consumer gets at an offset."""

    offset: int
    value: bytes


@dataclass
class AskedMessage:
    """A record that some client sent at least once."""

    value: bytes
    partition: TopicPartition
    #: The earliest time at which it may be seen, by the right clock; None if it asked for no delay.
    due_ms: int | None
    expires_ms: int | None = None
    sender_id: bytes = b""
    #: What it was acknowledged with.
    offset: int | None = None
    #: How its transaction ended, if it has one.
    ending: Ending | None = None
    #: Whether somebody tried to cancel it.
    may_be_cancelled: bool = False
    #: Whether somebody was told that it is.
    is_cancelled: bool = False


@dataclass
class DelayHistory:
    #: By how much the clocks of two brokers may differ.
    clock_error_ms: int
    asked: dict[bytes, AskedMessage] = field(default_factory=dict)
    #: Cancellations themselves, which nobody ever sees.
    changes: set[bytes] = field(default_factory=set)
    cancelled_ids: set[tuple[TopicPartition, bytes]] = field(default_factory=set)
    seen: set[bytes] = field(default_factory=set)

    def named(
        self, partition: TopicPartition, offset: int | None, sender_id: bytes
    ) -> list[AskedMessage]:
        """All that may be meant by a name."""
        return [
            each
            for each in self.asked.values()
            if each.partition == partition
            and ((each.sender_id == sender_id) if sender_id else (each.offset in (offset, None)))
        ]

    # -- while it happens ------------------------------------------------------------------------

    def see(self, partition: TopicPartition, value: bytes, now_ms: int) -> None:
        """Somebody sees a record, by the right clock."""
        message = self.asked.get(value)
        if message is None or message.partition != partition:
            raise PropertyViolated(f"only what was sent is seen: {value!r} in {partition} was not")
        if message.due_ms is not None and now_ms < message.due_ms - self.clock_error_ms:
            raise PropertyViolated(
                f"nothing is delivered early: {value!r} was due at {message.due_ms} and is in "
                f"{partition} at {now_ms}"
            )
        if message.is_cancelled:
            raise PropertyViolated(f"what was cancelled is not delivered: {value!r} is")
        self.seen.add(value)

    # -- in the end ------------------------------------------------------------------------------

    def check(
        self,
        visible: Mapping[TopicPartition, Iterable[VisibleRecord]],
        cancelled: Mapping[TopicPartition, Collection[int]],
    ) -> None:
        """All that became visible, and the messages whose cancellations are in the log."""
        found: dict[bytes, int] = {}
        for partition, records in visible.items():
            for offset, value in records:
                if found.setdefault(value, offset) != offset:
                    raise PropertyViolated(
                        f"nothing is delivered twice: {value!r} is in {partition} at "
                        f"{found[value]} and at {offset}"
                    )
        for message in self.asked.values():
            is_found = message.value in found
            if message.is_cancelled and is_found:
                raise PropertyViolated(f"what was cancelled is not delivered: {message} is")
            if message.ending is Ending.ABORTED and message.due_ms is not None and is_found:
                raise PropertyViolated(f"what was aborted is not delivered: {message} is")
            if is_found or message.offset is None or message.ending not in (None, Ending.COMMITTED):
                continue
            if message.offset not in cancelled[message.partition]:
                raise PropertyViolated(f"nothing is lost: {message} is not delivered")
            if not self._may_be_gone(message):
                raise PropertyViolated(f"only what is to be cancelled is: {message} is not")

    def _may_be_gone(self, message: AskedMessage) -> bool:
        return (
            message.may_be_cancelled
            or message.expires_ms is not None
            or (message.partition, message.sender_id) in self.cancelled_ids
        )
