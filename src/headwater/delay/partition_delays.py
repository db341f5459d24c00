"""Delayed delivery in one partition: reads its log, knows what waits, hands over what is due.

It follows the log, and nothing else: a leader to its end, a follower up to the high watermark, in
front of which nothing is ever cut off. So whoever leads next knows what waits, and begins where the
log ends. Only a leader that has read all of its log hands over.

What is due within moments is read ahead, in a thread, and kept within a bound; a record that is
delayed only shortly is kept from when it came. After each round the loop belongs to others for as
long as the round took: a million records that are due at once come as fast as that allows.

The owner is the broker's event loop. All that waits is done by one task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.threads import RunInThread
from headwater.delay.answers import WaitingAnswers
from headwater.delay.checkpointing import Checkpointing
from headwater.delay.dead_letters.breaker_watch import BreakerWatch
from headwater.delay.dead_letters.moves import DeadLetterMoves
from headwater.delay.dead_letters.moving import Moving
from headwater.delay.delay_state import DelayState
from headwater.delay.hand_over import COPIES_MAX, HandOver
from headwater.delay.index.advance import AdvancePlan
from headwater.delay.index.checkpoint import IndexCheckpoint
from headwater.delay.index.index import DelayIndex
from headwater.delay.message_cache import MessageCache
from headwater.delay.message_reads import MessagePlaces, read_places
from headwater.delay.rolling import Rolling
from headwater.replication.partition.partition import Partition
from headwater.wire.delayed.copies import OrderKey
from headwater.wire.delayed.delayed_batch import (
    NEVER_MS,
    DelayedRecord,
)

_logger = logging.getLogger(__name__)

#: So much of the log is read in one go here, and in a thread.
_INLINE_BYTES_MAX: Final = 256 << 10
_SLICE_BYTES: Final = 8 << 20
#: What is due so soon is read ahead.
_AHEAD_MS: Final = 500
#: So many records may be behind the high watermark while copies are appended.
_UNREPLICATED_OFFSETS_MAX: Final = 100_000
#: A clock may be set, and a follower has to look how far it may read; where nothing waits, an
#: append wakes whoever sleeps.
_LOOK_INTERVAL_S: Final = 1.0
_IDLE_INTERVAL_S: Final = 30.0
#: So many messages are looked through when records are deleted.
_DELETED_AT_ONCE_MAX: Final = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DelayEnvironment:
    """What all partitions of a broker share."""

    clock: Clock
    run_in_thread: RunInThread
    tasks: BackgroundTasks
    moves: DeadLetterMoves


class PartitionDelays:
    """One partition's deliveries: `start`, then it works until `close`."""

    def __init__(self, partition: Partition, environment: DelayEnvironment) -> None:
        self._partition = partition
        self._environment = environment
        self._clock = environment.clock
        self.cache = MessageCache()
        self.hand_over = HandOver(partition, self.cache)
        self.rolling = Rolling(partition)
        self.answers = WaitingAnswers(partition, self, environment.run_in_thread)
        self.moving = Moving(partition, environment.moves, environment.run_in_thread, self)
        self.breaker = BreakerWatch(partition)
        self._moving_task: asyncio.Task[None] | None = None
        self._state: DelayState | None = None
        #: Counts how often what was read turned out to be cut off.
        self._generation = 0
        self._has_new_log = False
        self.checkpointing = Checkpointing(partition, environment.clock, environment.run_in_thread)
        # What threads do while what is at hand is handed over; a round hears how they end.
        self._reading: asyncio.Task[tuple[int, list[DelayedRecord]]] | None = None
        self._nearing: asyncio.Task[None] | None = None
        #: What waited and was taken by DeleteRecords, since this broker started.
        self.deleted_count = 0
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    # -- a life ----------------------------------------------------------------------------------

    def start(self) -> None:
        name = f"deliveries of {self._partition.topic_partition}"
        self._task = self._environment.tasks.start(name, self._run())

    def wake(self) -> None:
        """The log has grown, or the partition has another role."""
        self._wake.set()

    def truncated(self) -> None:
        """The log was cut back: begin at the last checkpoint, if what was read is not there."""
        state = self._state
        self._generation += 1
        if state is not None and state.applied_offset > self._partition.log.log_end_offset:
            state.waiting.is_complete = False
            self._resume(state, state.index.reset_to_checkpoint())
        self._wake.set()

    def log_start_raised(self) -> None:
        """DeleteRecords took away what lies in front of the log's start, whatever waited there."""
        state = self._state
        if state is None or not state.waiting.is_complete:
            return  # It is found out when it would be delivered.
        start = self._partition.log_start_offset
        gone = state.index.lying_before(start, _DELETED_AT_ONCE_MAX)
        gone += [key for key in state.dead.values() if key.offset < start]
        for key in gone:
            state.forget(key)
        self.deleted_count += len(gone)
        if gone:
            _logger.info(
                "%d messages that waited in %s are deleted, with the records before offset %d.",
                len(gone),
                self._partition.topic_partition,
                start,
            )

    def log_replaced(self) -> None:
        """The log lies in another directory now, and its index does not."""
        self._generation += 1
        self._has_new_log = True
        self._wake.set()

    async def close(self) -> None:
        """Stop, and leave a checkpoint if the partition stays."""
        self._is_closing = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task})
        if self._moving_task is not None:
            self._moving_task.cancel()
            await asyncio.wait({self._moving_task})

    async def _run(self) -> None:
        pause_s, trouble = 0.0, ""
        while not self._is_closing:
            if pause_s <= 0:
                await asyncio.sleep(0)
            elif not self._wake.is_set():
                await self._sleep(pause_s)
            self._wake.clear()
            if self._partition.is_removed:
                await self._settle()
                return
            try:
                pause_s = await self._round()
                trouble = ""
            except (OSError, KafkaError) as error:
                if str(error) != trouble:  # It is told once, not every second.
                    trouble = str(error)
                    _logger.error(
                        "What waits in %s cannot be delivered just now: %s",
                        self._partition.topic_partition,
                        trouble,
                    )
                if isinstance(error, OSError):
                    await self._settle()
                    self._forget()
                pause_s = _LOOK_INTERVAL_S
        await self._settle()
        if self._state is not None and not self._partition.is_removed:
            try:
                await self.checkpointing.save_last(self._state)
            except OSError as error:
                _logger.error("%s", error)

    async def _sleep(self, pause_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), pause_s)

    async def _settle(self) -> None:
        """Let threads come to an end. What goes wrong there a new index makes good."""
        tasks = [each for each in (self._reading, self._nearing) if each is not None]
        self._reading = self._nearing = None
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.checkpointing.settle()

    async def _open(self) -> DelayState:
        await self._settle()
        log = self._partition.log
        now_ms = self._clock.wall_ms()
        self._has_new_log = False
        index, checkpoint = await self._environment.run_in_thread(
            lambda: DelayIndex.open(log.files, log.directory, now_ms)
        )
        state = self._state = DelayState(log, index, self._armed, self.cache.drop)
        self._resume(state, checkpoint)
        log.waiting = state.waiting
        return state

    def _forget(self) -> None:
        """The index may lack something that its disk refused: it is opened anew."""
        if self._state is not None:
            self._state.waiting.is_complete = False
            self._state.index.close()
            self._state = None

    def _resume(self, state: DelayState, checkpoint: IndexCheckpoint | None) -> None:
        log = self._partition.log
        self.cache.clear()
        self.hand_over.is_lacking = True
        saved_offset = -1
        if checkpoint is not None and state.is_of_this_log(checkpoint.state, checkpoint.offset):
            state.load_json(dict(checkpoint.state), checkpoint.offset)
            saved_offset = checkpoint.offset
        else:
            state.index.reset()
            state.restart(log.log_start_offset)
        self.checkpointing.resumed(saved_offset)

    def _armed(self, key: OrderKey, message: DelayedRecord | None) -> None:
        """What is due shortly need not be read again; a dead letter is to be moved."""
        if key.due_ms >= NEVER_MS:
            self.moving.wake()
        if key.due_ms > self._clock.wall_ms() + _AHEAD_MS:
            if message is None:  # It may have been put off at the last moment.
                self.cache.drop(key.offset)
        elif message is not None and self._partition.is_leader and not self.cache.is_full:
            self.cache.put(message)
        else:
            self.hand_over.is_lacking = True

    # -- a round ---------------------------------------------------------------------------------

    async def _round(self) -> float:
        """Do what there is to do; in how many seconds there may be more."""
        state = self._state
        if state is None or self._has_new_log:
            state = await self._open()
        if not await self._follow(state):
            return 0.0
        if not await self._bring_near(state):
            return 0.0
        await self.checkpointing.save_if_due(state)
        if not self._partition.is_leader:
            return _LOOK_INTERVAL_S
        return await self._deliver(state)

    @property
    def _readable_end(self) -> int:
        """Up to where the log is read: on a follower, only what cannot be cut off."""
        log = self._partition.log
        return log.log_end_offset if self._partition.is_leader else log.high_watermark

    async def _follow(self, state: DelayState) -> bool:
        """Read on in the log; whether all is read that may be."""
        while (read := state.next_read(self._readable_end)) is not None:
            if read.size <= _INLINE_BYTES_MAX:
                state.apply_all(read.run(_INLINE_BYTES_MAX))
                continue
            generation, applied_offset = self._generation, state.applied_offset
            part = await self._environment.run_in_thread(_bound(read.run, _SLICE_BYTES))
            if generation != self._generation or self._is_closing:
                return False
            if state.applied_offset == applied_offset:  # Nobody asked for it in the meantime.
                state.apply_all(part)
        if state.waiting.is_complete:
            self.breaker.look(state, self._clock.wall_ms())
        else:
            state.waiting.is_complete = True
            self.breaker.begin(state)
        return True

    async def _bring_near(self, state: DelayState) -> bool:
        """Have what is due soon in memory; false if the log was cut meanwhile.

        Only what is due in a moment is waited for.
        """
        index, generation = state.index, self._generation
        while True:
            nearing = self._nearing
            if nearing is not None:
                soon_ms = self._clock.wall_ms() + _AHEAD_MS
                if not nearing.done() and index.horizon_ms > soon_ms:
                    return True
                self._nearing = None
                await nearing
                if generation != self._generation:
                    return False
            plan = index.plan_advance(self._clock.wall_ms())
            if plan is None:
                return True
            self._nearing = asyncio.ensure_future(self._advance(index, plan))

    async def _advance(self, index: DelayIndex, plan: AdvancePlan) -> None:
        try:
            await self._environment.run_in_thread(plan.run)
        except BaseException:
            index.abandon_advance(plan)
            raise
        index.complete_advance(plan)
        self._wake.set()

    # -- the leader's part -----------------------------------------------------------------------

    async def _deliver(self, state: DelayState) -> float:
        """Hand over what is due; in how many seconds more will be."""
        if state.dead and (self._moving_task is None or self._moving_task.done()):
            name = f"dead letters of {self._partition.topic_partition}"
            self._moving_task = self._environment.tasks.start(name, self.moving.run())
        if self.rolling.is_due(state, self._clock.wall_ms()):
            await self.rolling.run(state, self._clock, self._environment.run_in_thread)
        partition = self._partition
        await self._read_ahead(state)
        if not partition.is_leader or self._has_new_log:
            return 0.0
        state.follow_at_once()  # There is something new at every moment.
        if partition.log_end_offset - partition.high_watermark > _UNREPLICATED_OFFSETS_MAX:
            return _LOOK_INTERVAL_S / 100
        begun_ms = self._clock.monotonic_ms()
        count = self.hand_over.run(state, self._clock.wall_ms())
        if count >= COPIES_MAX:
            # There is more than it can do at once: others get as long again.
            await asyncio.sleep((self._clock.monotonic_ms() - begun_ms) / 1000)
        if count > 0:
            return 0.0
        first = state.index.first()
        if first is None:
            return _LOOK_INTERVAL_S if state.index.count else _IDLE_INTERVAL_S
        left_ms = first.due_ms - self._clock.wall_ms()
        # It is to be read before, and so is what comes behind it.
        left_ms = left_ms - _AHEAD_MS if left_ms > _AHEAD_MS else min(left_ms, _AHEAD_MS // 2)
        return min(max(left_ms, 0) / 1000, _LOOK_INTERVAL_S)

    async def _read_ahead(self, state: DelayState) -> None:
        """Have at hand what is due soon: it is read while what is at hand is handed over."""
        hand_over, reading = self.hand_over, self._reading
        if reading is not None and (reading.done() or hand_over.is_lacking):
            self._reading = None
            generation, messages = await reading
            self.cache.end_reading(messages if generation == self._generation else ())
            reading = None
        if reading is None and hand_over.wants_more(self._clock.wall_ms() + _AHEAD_MS // 2):
            places = hand_over.missing(state, self._clock.wall_ms() + _AHEAD_MS)
            if places:
                self.cache.begin_reading()
                self._reading = asyncio.ensure_future(self._read(places))

    async def _read(self, places: list[MessagePlaces]) -> tuple[int, list[DelayedRecord]]:
        """With the generation of the log that they are of."""
        generation = self._generation
        messages = await self._environment.run_in_thread(_bound(read_places, places))
        self._wake.set()
        return generation, messages

    # -- asked by others -------------------------------------------------------------------------

    def ready_state(self) -> DelayState:
        """The state, with all that the log says; `KafkaError` if this broker cannot tell."""
        self._partition.check_leader()
        state = self._state
        if state is None or self._has_new_log or not state.waiting.is_complete:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"What waits in {self._partition.topic_partition} is being read.",
            )
        state.follow_at_once()
        return state

    @property
    def known_state(self) -> DelayState | None:
        """The same as far as it is known; None where another broker delivers."""
        state = self._state
        if state is None or not self._partition.is_leader or not state.waiting.is_complete:
            return None
        return state


def _bound(call: Callable[..., T], *args: object) -> Callable[[], T]:
    return lambda: call(*args)
