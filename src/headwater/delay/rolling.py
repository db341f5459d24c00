"""Rolling: what still waits in a segment that is to go is appended anew, at the log's end.

A message lies in the log, and retention drops old segments of it. So a segment with something that
waits stays, and the leader moves what waits there: as a delayed message that names the offset of
the first one, takes its place on every replica, and is armed by itself. Once nothing waits in the
old segment it goes like any other.

A message is moved at most once in `retention.ms`, or in a day if that is longer: a topic that keeps
records for a minute does not write what waits again every minute.
"""

from __future__ import annotations

from typing import Final

from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread
from headwater.delay.delay_state import DelayState
from headwater.delay.log_events import EventSlice, plan_event_read
from headwater.delay.message_reads import FoundMessage
from headwater.replication.partition.partition import Partition
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.copies import OrderKey
from headwater.wire.delayed.delayed_batch import (
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
    encode_delayed_batch,
)

_DAY_MS: Final = 86_400_000
_LOOK_INTERVAL_MS: Final = 30_000
#: So much of a segment is looked through before others get their turn: it may have thousands of
#: messages, each of which is found, appended and armed.
_SLICE_BYTES: Final = 256 << 10
_BATCH_BYTES_MAX: Final = 256 << 10
_ACKS: Final = 1


class Rolling:
    """Of one partition that this broker leads."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._looked_ms = 0
        #: How far the segment that is being moved was looked through.
        self._next_offset = 0
        self.rolled_bytes = 0

    def is_due(self, state: DelayState, now_ms: int) -> bool:
        """Whether there is a segment that only stays for what waits in it; asked now and then."""
        if abs(now_ms - self._looked_ms) < _LOOK_INTERVAL_MS:
            return False
        if self._base_offset(state, now_ms) is None:
            self._looked_ms = now_ms
            return False
        return True

    def _base_offset(self, state: DelayState, now_ms: int) -> int | None:
        """The segment to empty."""
        log = self._partition.log
        bases = state.waiting.segments
        segment = log.segments.get(bases[0]) if bases else None
        if segment is None or segment is log.segments.active or not log.config.deletes_by_retention:
            return None
        config = log.config
        age_ms = now_ms - segment.largest_timestamp
        is_old = 0 <= config.retention_ms < age_ms
        is_beyond = 0 <= config.retention_bytes < log.size_bytes - state.waiting.bytes
        if age_ms <= max(config.retention_ms, _DAY_MS) or not (is_old or is_beyond):
            return None
        return segment.base_offset

    async def run(self, state: DelayState, clock: Clock, run_in_thread: RunInThread) -> None:
        """Move a part of what waits in the oldest segment."""
        base_offset = self._base_offset(state, clock.wall_ms())
        if base_offset is None:
            return
        log = self._partition.log
        segment = log.segments.get(base_offset)
        if segment is None:
            return
        if not base_offset <= self._next_offset < segment.next_offset:
            self._next_offset = base_offset
        read = plan_event_read(log, self._next_offset, segment.next_offset)
        if read is None:
            self._looked_ms = clock.wall_ms()
            return
        found: EventSlice = await run_in_thread(lambda: read.run(_SLICE_BYTES))
        if not self._partition.is_leader or state.applied_offset != log.log_end_offset:
            return
        self._next_offset = found.next_offset
        moved: list[tuple[DelayedRecord, OrderKey]] = []
        size = 0
        for header, data in found.events:
            if not header.is_delayed:
                continue
            for message in decode_delayed_batch(data, check_crc=False):
                key = self._waiting_key(state, FoundMessage(message, header.is_transactional))
                if key is not None:
                    moved.append((message, key))
                    size += len(message.value)
                    if size > _BATCH_BYTES_MAX:
                        self._append(state, moved, clock.wall_ms())
                        moved, size = [], 0
        if moved:
            self._append(state, moved, clock.wall_ms())
        if self._next_offset >= segment.next_offset:
            self._looked_ms = clock.wall_ms()

    def _waiting_key(self, state: DelayState, message: FoundMessage) -> OrderKey | None:
        """The key of a message that waits here, and not elsewhere by now."""
        record = message.record
        if (
            record.kind is not DelayedKind.MESSAGE
            or record.offset < self._partition.log.log_start_offset
        ):
            return None
        return state.key_of(message)

    def _append(
        self, state: DelayState, messages: list[tuple[DelayedRecord, OrderKey]], now_ms: int
    ) -> None:
        rolled = [
            message._replace(offset=number, original=message.id_offset, due_ms=key.due_ms)
            for number, (message, key) in enumerate(messages)
        ]
        batch = encode_delayed_batch(rolled, append_ms=now_ms)
        self._partition.append(batch, acks=_ACKS, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        self.rolled_bytes += len(batch)
        state.follow_at_once()
