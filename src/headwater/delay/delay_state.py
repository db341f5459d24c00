"""What waits in a partition, as its log says: a state machine over the batches that matter.

    delayed batch   its messages are armed, or, in a transaction, wait for its end
    commit marker   arms what its transaction sent
    abort marker    drops it
    copies          these were delivered, and the last one's key is the watermark

Everything that is armed gets its `OrderKey` from the log alone, so every replica that has read the
log up to the same place has the same state, whoever leads. Nothing here looks at a clock.

Dead letters are armed too, but are never due here. They are kept apart from the index, for nothing
brings them near, and leave by a cancellation that commits with their copy in another topic.

What was written of a message before its present key (a cancellation that came too late, a second
one) names nothing that waits, and only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from headwater.delay.index.index import DelayIndex
from headwater.delay.log_events import EventRead, EventSlice, LogEvent, plan_event_read
from headwater.delay.message_reads import FoundMessage, find_message, read_message
from headwater.delay.waiting import MessageName
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendedBatch
from headwater.storage.waiting_messages import WaitingMessages, log_bytes_of
from headwater.wire.delayed.copies import (
    DELIVERY_PRODUCER_ID,
    NOTHING_DELIVERED,
    OrderKey,
    read_order_key,
)
from headwater.wire.delayed.delayed_batch import (
    NEVER_MS,
    NONE,
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
)
from headwater.wire.records import ControlType, decode_batch

#: What was just appended is read again in pieces of this size.
_AT_ONCE_BYTES: Final = 8 << 20
#: So many messages are found under one sender's id at a time, the newest, since all are read; and
#: so many with this id are looked at for that.
FOUND_MAX: Final = 1_000
_CANDIDATES_MAX: Final = 10_000
_UNKNOWN_IDS_MAX: Final = 10_000


class _Undecided(NamedTuple):
    """A record whose transaction is open: all that counts once it is committed."""

    kind: int
    offset: int
    original: int
    due_ms: int
    sender_id: str


#: Told of each message as it is armed, with its record where that is at hand.
OnArmed = Callable[[OrderKey, DelayedRecord | None], None]
#: Told where a message lay that does not wait there any more.
OnGone = Callable[[int], None]


class DelayState:
    """Of one partition, up to `applied_offset`. Its owner is the partition's `PartitionDelays`."""

    def __init__(
        self, log: PartitionLog, index: DelayIndex, on_armed: OnArmed, on_gone: OnGone
    ) -> None:
        self._log = log
        self._on_armed = on_armed
        self._on_gone = on_gone
        self.index = index
        self.waiting = WaitingMessages()
        self.applied_offset = log.log_start_offset
        #: All messages from here on were seen, and are counted.
        self._counted_from = log.log_start_offset
        self.watermark = NOTHING_DELIVERED
        #: By producer, what its open transaction has sent.
        self._undecided: dict[int, list[_Undecided]] = {}
        #: Of messages whose key does not follow from their first record any more: by the offset
        #: that names them, where they lie and when they are due.
        self._changed: dict[int, OrderKey] = {}
        #: The same by where they lie.
        self._changed_at: dict[int, int] = {}
        #: Dead letters, by the offset that names them, in the order in which they were armed.
        self.dead: dict[int, OrderKey] = {}
        #: Senders' ids under which nothing waits, as was found out: many ask for the same one.
        self._unknown_ids: set[bytes] = set()
        #: Since this state was made.
        self.given_up_count = 0
        self.cancelled_count = 0
        self.unknown_count = 0

    # -- following the log -----------------------------------------------------------------------

    def apply(self, event: LogEvent) -> None:
        """Take the next batch that matters into account."""
        header, data = event
        if header.is_delayed:
            records = decode_delayed_batch(data, check_crc=False)
            segment = self._segment_of(header.base_offset)
            messages = [each for each in records if each.kind is DelayedKind.MESSAGE]
            for message, size_bytes in zip(messages, log_bytes_of(messages), strict=True):
                if message.offset >= self._counted_from:
                    self.waiting.add(segment, size_bytes)
            if header.is_transactional:
                self._undecided.setdefault(header.producer_id, []).extend(map(_undecided, records))
            else:
                for record in records:
                    self._arm(_undecided(record), record.offset, record)
        elif header.producer_id == DELIVERY_PRODUCER_ID:
            self.delivered(read_order_key(each) for each in decode_batch(data, check_crc=False))
        elif header.producer_id in self._undecided:
            marker = AppendedBatch.read(header, data).marker
            is_committed = marker is not None and marker.type is ControlType.COMMIT
            for each in self._undecided.pop(header.producer_id):
                if is_committed:
                    self._arm(each, header.base_offset, None)
                elif each.kind == DelayedKind.MESSAGE:
                    self._count_out(each.offset)
        self.applied_offset = header.next_offset

    def next_read(self, end_offset: int) -> EventRead | None:
        """Where to read on, up to there; None if all is read."""
        log = self._log
        if self.applied_offset < log.log_start_offset:
            # Nothing that it knows of is there any more.
            self.index.reset()
            self.restart(log.log_start_offset)
        if self.applied_offset >= end_offset:
            return None
        read = plan_event_read(log, self.applied_offset, end_offset)
        if read is None:
            self.applied_offset = end_offset
        return read

    def apply_all(self, part: EventSlice) -> None:
        """Take a piece of the log into account that was read where `next_read` said."""
        for event in part.events:
            # While a thread read it, somebody may have wanted to know it at once.
            if event.header.next_offset > self.applied_offset:
                self.apply(event)
        self.applied_offset = max(self.applied_offset, part.next_offset)

    def follow_at_once(self) -> None:
        """Take note of what was just appended here."""
        while (read := self.next_read(self._log.log_end_offset)) is not None:
            self.apply_all(read.run(_AT_ONCE_BYTES))

    def _arm(self, each: _Undecided, armed_offset: int, record: DelayedRecord | None) -> None:
        due_ms = max(each.due_ms, self.watermark.due_ms)
        if each.kind == DelayedKind.MESSAGE:
            key = OrderKey(due_ms, armed_offset, each.offset)
            if each.original != NONE:
                self._replace(each.original, key, armed_offset)
            self._add(each.offset if each.original == NONE else each.original, key)
            if due_ms >= NEVER_MS and each.original == NONE:
                self.given_up_count += 1
            if each.sender_id:
                sender_id = each.sender_id.encode("utf-8", "surrogateescape")
                self.index.ids.add(sender_id, key)
                self._unknown_ids.discard(sender_id)
            self._on_armed(key, record)
            return
        name = MessageName(each.original, each.sender_id.encode("utf-8", "surrogateescape"))
        found = self.find(name)
        # What is read anew after a start was counted long ago.
        is_new = self.waiting.is_complete
        if not found:
            self.unknown_count += is_new
        for id_offset, old in found:
            self._remove(id_offset, old, armed_offset)
            if each.kind == DelayedKind.CANCEL:
                self._is_gone(old.offset)
                self.cancelled_count += is_new
                continue
            key = OrderKey(due_ms, armed_offset, old.offset)
            self._add(id_offset, key)
            self._note_change(id_offset, key)
            self._on_armed(key, None)

    def _replace(self, id_offset: int, key: OrderKey, at_offset: int) -> None:
        """A message that waits lies elsewhere from now on.

        Only what waits is moved. So if it is not found it lay in front of where the log begins now.
        """
        old = self._find_offset(id_offset)
        if old is not None:
            self._remove(id_offset, old, at_offset)
            self._is_gone(old.offset)
        self._note_change(id_offset, key)

    def _add(self, id_offset: int, key: OrderKey) -> None:
        if key.due_ms >= NEVER_MS:
            self.dead[id_offset] = key
        else:
            self.index.add(key)

    def _remove(self, id_offset: int, key: OrderKey, at_offset: int) -> None:
        if self.dead.pop(id_offset, None) is None:
            self.index.remove(key, at_offset)

    def _note_change(self, id_offset: int, key: OrderKey) -> None:
        self._changed[id_offset] = key
        self._changed_at[key.offset] = id_offset

    def _is_gone(self, offset: int) -> None:
        """What lies there does not wait any more."""
        self._count_out(offset)
        self._on_gone(offset)
        if self._changed_at:
            id_offset = self._changed_at.pop(offset, None)
            if id_offset is not None:
                del self._changed[id_offset]

    def delivered(self, keys: Iterable[OrderKey]) -> None:
        """Copies with these keys, in this order, are in the log."""
        last = None
        for last in keys:
            self._is_gone(last.offset)
        if last is not None:
            self.watermark = last
            self.index.pass_to(last)

    def forget(self, key: OrderKey) -> None:
        """A message is gone with the start of the log; no batch says so."""
        id_offset = self._changed_at.get(key.offset, key.offset)
        self._remove(id_offset, key, max(self.applied_offset - 1, 0))
        self._is_gone(key.offset)

    def _count_out(self, offset: int) -> None:
        if offset >= self._counted_from:
            self.waiting.remove(self._segment_of(offset), self._log.log_end_offset)

    def _segment_of(self, offset: int) -> int:
        """The base offset of the segment that a message lies in; -1 if that is deleted."""
        segments = self._log.segments
        number = segments.floor_number(offset)
        return segments[number].base_offset if number >= 0 else -1

    # -- looking ---------------------------------------------------------------------------------

    def find(self, name: MessageName) -> list[tuple[int, OrderKey]]:
        """What waits under a name: the offset that names each, and its key."""
        if not name.sender_id:
            key = self._find_offset(name.offset)
            return [] if key is None else [(name.offset, key)]
        if name.sender_id in self._unknown_ids:
            return []
        found = {}
        for candidate in islice(self.index.ids.candidates(name.sender_id), _CANDIDATES_MAX):
            waiting = self._waiting_as(candidate)
            if waiting is None:
                continue
            id_offset, key = waiting
            record = read_message(self._log, key.offset)
            if record is not None and record.sender_id == name.sender_id:
                found[id_offset] = key
                if len(found) >= FOUND_MAX:
                    break
        if not found:
            if len(self._unknown_ids) >= _UNKNOWN_IDS_MAX:
                self._unknown_ids.clear()
            self._unknown_ids.add(name.sender_id)
        return sorted(found.items())

    def _waiting_as(self, armed: OrderKey) -> tuple[int, OrderKey] | None:
        """The name and the key of what was armed so, if it waits where it lay then."""
        id_offset = self._changed_at.get(armed.offset)
        if id_offset is not None:
            return id_offset, self._changed[id_offset]
        dead = self.dead.get(armed.offset)
        if dead is not None:
            return armed.offset, dead
        return (armed.offset, armed) if self.index.holds(armed) else None

    def key_of(self, message: FoundMessage) -> OrderKey | None:
        """The key of a message if it waits, and waits where this record of it lies."""
        record = message.record
        key = self._changed.get(record.id_offset) or self.dead.get(record.id_offset)
        if key is None:
            key = self._first_key(message)
        return key if key is not None and key.offset == record.offset else None

    def _find_offset(self, id_offset: int) -> OrderKey | None:
        known = self._changed.get(id_offset) or self.dead.get(id_offset)
        if known is not None:
            return known
        found = find_message(self._log, id_offset)
        return None if found is None else self._first_key(found)

    def _first_key(self, message: FoundMessage) -> OrderKey | None:
        """The key of a message that was never changed, if it waits."""
        record, is_transactional = message
        if record.kind is not DelayedKind.MESSAGE or record.original != NONE:
            return None
        if not is_transactional:
            # It armed itself, when nothing had been delivered yet that was due later: else its due
            # time would have been raised before it was written.
            key = OrderKey(record.due_ms, record.offset, record.offset)
            return key if self.index.holds(key) else None
        # What waits is not due before the watermark; what would be was raised to it. Which marker
        # armed it, only the index knows.
        due_ms = max(record.due_ms, self.watermark.due_ms)
        found = self.index.find(record.offset, due_ms)
        return found if found is not None and found > self.watermark else None

    # -- being kept ------------------------------------------------------------------------------

    def forget_old_ids(self) -> None:
        """Let go of senders' ids in front of all that waits; a part of them with each call."""
        segments = self.waiting.segments
        self.index.ids.forget_below(segments[0] if segments else self.applied_offset)

    def as_json(self) -> dict[str, Any]:
        """All that a checkpoint keeps beside the index."""
        return {
            "epoch": self._epoch_before(self.applied_offset),
            "counted_from": self._counted_from,
            "watermark": list(self.watermark),
            "segments": self.waiting.as_json(),
            "undecided": {str(pid): list(each) for pid, each in self._undecided.items()},
            "changed": {str(offset): list(key) for offset, key in self._changed.items()},
            "dead": {str(offset): list(key) for offset, key in self.dead.items()},
        }

    def is_of_this_log(self, kept: Mapping[str, Any], applied_offset: int) -> bool:
        """Whether a checkpoint tells of this log, and not of an end that was lost since."""
        return applied_offset <= self._log.log_end_offset and kept["epoch"] == self._epoch_before(
            applied_offset
        )

    def _epoch_before(self, offset: int) -> int | None:
        """Who wrote the last record in front of an offset: what replaces it has another epoch."""
        return self._log.leader_epochs.epoch_for_offset(offset - 1)

    def load_json(self, kept: dict[str, Any], applied_offset: int) -> None:
        """Go on from a checkpoint."""
        self.applied_offset = applied_offset
        self._counted_from = kept["counted_from"]
        self.watermark = OrderKey(*kept["watermark"])
        self.waiting.load_json(kept["segments"])
        self._undecided = {
            int(pid): [_Undecided(*each) for each in records]
            for pid, records in kept["undecided"].items()
        }
        self._changed = {int(offset): OrderKey(*key) for offset, key in kept["changed"].items()}
        self._unknown_ids.clear()
        self._changed_at = {key.offset: id_offset for id_offset, key in self._changed.items()}
        # A checkpoint of a time when there were no retry topics has none.
        dead = kept.get("dead", {})
        self.dead = {int(offset): OrderKey(*key) for offset, key in dead.items()}

    def restart(self, offset: int) -> None:
        """Nothing is known: the log is read anew from `offset` on."""
        self.applied_offset = self._counted_from = offset
        self.watermark = NOTHING_DELIVERED
        self.waiting.clear()
        self._undecided.clear()
        self._changed.clear()
        self._changed_at.clear()
        self._unknown_ids.clear()
        self.dead.clear()


def _undecided(record: DelayedRecord) -> _Undecided:
    return _Undecided(
        int(record.kind),
        record.offset,
        record.original,
        record.due_ms,
        record.sender_id.decode("utf-8", "surrogateescape"),
    )
