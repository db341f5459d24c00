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
from headwater.delay.waiting import MessageName
from headwater.replication.partition.partition import Partition
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.delayed_batch import (
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
    encode_delayed_batch,
)

_DAY_MS: Final = 86_400_000
_LOOK_INTERVAL_MS: Final = 30_000
_SLICE_BYTES: Final = 4 << 20
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
        moved: list[DelayedRecord] = []
        size = 0
        for header, data in found.events:
            if not header.is_delayed:
                continue
            for message in decode_delayed_batch(data, check_crc=False):
                if self._waits(state, message):
                    moved.append(message)
                    size += len(message.value)
                    if size > _BATCH_BYTES_MAX:
                        self._append(state, moved, clock.wall_ms())
                        moved, size = [], 0
        if moved:
            self._append(state, moved, clock.wall_ms())
        if self._next_offset >= segment.next_offset:
            self._looked_ms = clock.wall_ms()

    def _waits(self, state: DelayState, message: DelayedRecord) -> bool:
        """Whether a message waits here, and not elsewhere by now."""
        if (
            message.kind is not DelayedKind.MESSAGE
            or message.offset < self._partition.log.log_start_offset
        ):
            return False
        found = state.find(MessageName(message.id_offset))
        return bool(found) and found[0][1].offset == message.offset

    def _append(self, state: DelayState, messages: list[DelayedRecord], now_ms: int) -> None:
        rolled = []
        for number, message in enumerate(messages):
            key = state.find(MessageName(message.id_offset))[0][1]
            rolled.append(
                message._replace(offset=number, original=message.id_offset, due_ms=key.due_ms)
            )
        batch = encode_delayed_batch(rolled, append_ms=now_ms)
        self._partition.append(batch, acks=_ACKS, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        self.rolled_bytes += len(batch)
        state.follow_at_once()
