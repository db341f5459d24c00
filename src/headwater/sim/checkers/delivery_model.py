"""The deliveries of a log, by the plainest model there is: a dictionary of what waits.

It is told every batch of a log in order and holds the copies among them to what is promised: each
is the copy of the message that comes first among all that wait, none comes twice, none that was
cancelled. What then still waits must be what the broker says waits. It shares the format of batches
with the broker, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.sim.histories.history import PropertyViolated
from headwater.wire.delayed.copies import (
    DELIVERY_PRODUCER_ID,
    NOTHING_DELIVERED,
    OrderKey,
    read_order_key,
)
from headwater.wire.delayed.delayed_batch import (
    NONE,
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
)
from headwater.wire.delayed.headers import DELAYED_OFFSET_HEADER
from headwater.wire.records import BatchHeader, ControlType, Record, decode_batch, read_control_type


class WaitingRecord(NamedTuple):
    key: OrderKey
    message: DelayedRecord


class Copy(NamedTuple):
    """A message that was delivered."""

    id_offset: int
    key: OrderKey
    #: Where the copy stands.
    offset: int
    value: bytes


@dataclass
class DeliveryModel:
    """Up to `end`, from the very beginning of a log."""

    end: int = 0
    #: By the offset that names each.
    waiting: dict[int, WaitingRecord] = field(default_factory=dict)
    #: By producer, what its open transaction has sent.
    undecided: dict[int, list[DelayedRecord]] = field(default_factory=dict)
    watermark: OrderKey = NOTHING_DELIVERED
    copies: dict[int, Copy] = field(default_factory=dict)
    #: The messages that cancellations in the log were about, and those that were moved.
    cancelled: set[int] = field(default_factory=set)
    rolled: set[int] = field(default_factory=set)
    #: What lies in front of it was deleted on purpose, and need not be delivered.
    start: int = 0

    def order(self) -> list[OrderKey]:
        """What waits, in the order in which it will be delivered."""
        return sorted(each.key for each in self.waiting.values() if each.key.offset >= self.start)

    def apply(self, header: BatchHeader, data: bytes) -> None:
        """The next batch of the log."""
        if header.is_delayed:
            records = decode_delayed_batch(data)
            if header.is_transactional:
                self.undecided.setdefault(header.producer_id, []).extend(records)
            else:
                for record in records:
                    self._arm(record, record.offset)
        elif header.producer_id == DELIVERY_PRODUCER_ID:
            for copy in decode_batch(data):
                self._deliver(copy)
        elif header.is_control:
            sent = self.undecided.pop(header.producer_id, [])
            marker = read_control_type(decode_batch(data)[0])
            for record in sent if marker is ControlType.COMMIT else ():
                self._arm(record, header.base_offset)
        self.end = header.next_offset

    def _arm(self, record: DelayedRecord, armed_offset: int) -> None:
        due_ms = max(record.due_ms, self.watermark.due_ms)
        if record.kind is DelayedKind.MESSAGE:
            if record.original != NONE:
                self._roll(record)
            key = OrderKey(due_ms, armed_offset, record.offset)
            self.waiting[record.id_offset] = WaitingRecord(key, record)
            return
        for name in self._named(record):
            old = self.waiting.pop(name)
            if record.kind is DelayedKind.CANCEL:
                self.cancelled.add(name)
            else:
                key = OrderKey(due_ms, armed_offset, old.key.offset)
                self.waiting[name] = old._replace(key=key)

    def _named(self, change: DelayedRecord) -> list[int]:
        if not change.sender_id:
            return [change.original] if change.original in self.waiting else []
        return [
            name
            for name, each in self.waiting.items()
            if each.message.sender_id == change.sender_id and each.key.offset >= self.start
        ]

    def _roll(self, record: DelayedRecord) -> None:
        old = self.waiting.get(record.original)
        if old is None or old.key.offset < self.start:
            raise PropertyViolated(
                f"only what waits is moved: {record.original} does not, and lies at "
                f"{record.offset} again"
            )
        self.rolled.add(record.original)

    def _deliver(self, record: Record) -> None:
        key = read_order_key(record)
        id_offset = int(dict(record.headers).get(DELAYED_OFFSET_HEADER) or b"-1")
        if id_offset in self.copies:
            raise PropertyViolated(
                f"nothing is delivered twice: message {id_offset} is at "
                f"{self.copies[id_offset].offset} and at {record.offset}"
            )
        if id_offset in self.cancelled:
            raise PropertyViolated(
                f"what was cancelled is not delivered: message {id_offset} is at {record.offset}"
            )
        if key <= self.watermark:
            raise PropertyViolated(
                f"deliveries are in order: {key} at {record.offset} follows {self.watermark}"
            )
        first = min(self.order(), default=None)
        if key != first:
            raise PropertyViolated(
                f"what comes first is delivered first: {first} waits, and {key} is at "
                f"{record.offset}"
            )
        message = self.waiting.pop(id_offset).message.record()
        sent = (message.key, message.value, message.headers)
        if sent != (record.key, record.value, record.headers[: len(message.headers)]):
            raise PropertyViolated(f"a copy is what was sent: {record} is not {message}")
        self.watermark = key
        self.copies[id_offset] = Copy(id_offset, key, record.offset, record.value or b"")
