"""Answers about what waits in one partition, and changes of it that clients ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.threads import RunInThread
from headwater.delay.delay_state import DelayState
from headwater.delay.message_reads import read_message
from headwater.delay.waiting import (
    Changed,
    ChangeKind,
    DelayChange,
    DelayCounts,
    MessageName,
    WaitingMessage,
)
from headwater.replication.partition.partition import Partition
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.copies import OrderKey
from headwater.wire.delayed.delayed_batch import (
    NEVER_MS,
    NONE,
    DelayedKind,
    DelayedRecord,
    delayed_change,
    encode_delayed_batch,
)

if TYPE_CHECKING:
    from headwater.delay.partition_delays import PartitionDelays

_MINUTE_MS: Final = 60_000
#: How often a list is begun again whose files are gone.
_LISTED_ANEW_MAX: Final = 5


class WaitingAnswers:
    """Answers for one partition, as `WaitingQuestions` says; it has nothing of its own."""

    def __init__(
        self, partition: Partition, delays: PartitionDelays, run_in_thread: RunInThread
    ) -> None:
        self._partition = partition
        self._delays = delays
        self._run_in_thread = run_in_thread

    def find(self, name: MessageName) -> list[WaitingMessage]:
        """What waits under a name."""
        state = self._delays.ready_state()
        return self._waiting(key for _, key in state.find(name))

    async def between(
        self, from_ms: int, to_ms: int, limit: int, skip: int = 0
    ) -> list[WaitingMessage]:
        """What waits and is due from one time to another, in order, but the first."""
        for _ in range(_LISTED_ANEW_MAX):
            state = self._delays.ready_state()
            plan = state.index.plan_listing(from_ms, to_ms + 1, skip + limit)
            if not plan.sources:
                keys = plan.run()
                break
            try:
                keys = await self._run_in_thread(plan.run)
            except FileNotFoundError:  # What was in it is elsewhere by now.
                continue
            state = self._delays.ready_state()
            break
        else:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"What waits in {self._partition.topic_partition} changes faster than it is read.",
            )
        if to_ms >= NEVER_MS:
            keys.extend(islice(state.dead.values(), skip + limit - len(keys)))
        # Some may have been delivered while a thread read.
        return self._waiting(key for key in keys[skip:] if key > state.watermark)

    def _waiting(self, keys: Iterable[OrderKey]) -> list[WaitingMessage]:
        found = []
        for key in keys:
            message = self._delays.cache.get(key.offset) or read_message(
                self._partition.log, key.offset
            )
            if message is not None:
                found.append(
                    WaitingMessage(
                        message.id_offset,
                        key.due_ms,
                        message.sent_ms,
                        message.expires_ms,
                        message.sender_id,
                        message.record().key,
                        len(message.value),
                    )
                )
        return found

    def counts(self, now_ms: int) -> DelayCounts:
        return self._counts(self._delays.ready_state(), now_ms)

    def known_counts(self, now_ms: int) -> DelayCounts | None:
        """The same as far as it is known; None where another broker delivers."""
        state = self._delays.known_state
        return None if state is None else self._counts(state, now_ms)

    def _counts(self, state: DelayState, now_ms: int) -> DelayCounts:
        index, hand_over = state.index, self._delays.hand_over
        first = index.first_of_all() if index.count else None
        return DelayCounts(
            waiting=state.waiting.count,
            waiting_bytes=state.waiting.bytes,
            due_within_minute=index.count_until(now_ms + _MINUTE_MS),
            next_due_ms=NONE if first is None else first.due_ms,
            delivered=hand_over.delivered_count,
            cancelled=max(state.cancelled_count - hand_over.expired_count, 0),
            expired=hand_over.expired_count,
            unknown=state.unknown_count,
            rolled_bytes=self._delays.rolling.rolled_bytes,
            index_bytes=index.size_bytes,
            deleted=self._delays.deleted_count + hand_over.lost_count,
        )

    def change(self, changes: Sequence[DelayChange], *, acks: int, now_ms: int) -> list[Changed]:
        """Write changes into the log; whether they are safe is asked afterwards."""
        state = self._delays.ready_state()
        partition = self._partition
        found: list[list[int]] = []
        cancelled: set[int] = set()
        for each in changes:
            found.append([offset for offset, _ in state.find(each.name) if offset not in cancelled])
            if each.kind is ChangeKind.CANCEL:
                cancelled.update(found[-1])
        records = [
            _change_record(number, change, offset, now_ms)
            for number, (change, offset) in enumerate(
                (change, offset)
                for change, offsets in zip(changes, found, strict=True)
                for offset in offsets
            )
        ]
        if records:
            batch = encode_delayed_batch(records, append_ms=now_ms)
            partition.append(batch, acks=acks, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
            state.follow_at_once()
            self._delays.wake()
        end_offset = partition.log_end_offset
        # What says that nothing waits may not be safe yet either.
        return [Changed(tuple(offsets), end_offset) for offsets in found]


def _change_record(number: int, change: DelayChange, offset: int, now_ms: int) -> DelayedRecord:
    if change.kind is ChangeKind.CANCEL:
        return delayed_change(number, DelayedKind.CANCEL, original=offset)
    due_ms = now_ms if change.kind is ChangeKind.NOW else max(change.due_ms, now_ms)
    return delayed_change(number, DelayedKind.RESCHEDULE, original=offset, due_ms=due_ms)
