"""A seeded campaign against the deliveries of one log, compared with a model at every step.

The log lies on a faulty disk, and its `PartitionDelays` are the broker's; what replication does for
them is a few lines here. A campaign draws what happens from its seed: messages of all kinds are
sent, in transactions or not, cancelled and rescheduled, time passes or is set, copies are appended,
segments are sealed, moved and deleted, what is not replicated is cut off, the power goes. Then
three things must agree about what waits, key by key:

- what the broker has kept from event to event, or from a checkpoint on;
- what it makes of the log alone, read anew from its start;
- the model, which was told every batch since the beginning (`DeliveryModel`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Any, TypeVar, cast

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.durations import LONG_MAX
from headwater.base.errors import KafkaError
from headwater.delay.dead_letters.moves import NoMoves
from headwater.delay.partition_delays import DelayEnvironment, PartitionDelays
from headwater.delay.waiting import ChangeKind, DelayChange, MessageName
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.delay_bounds import small_bounds
from headwater.sim.campaigns.delays.log_comparison import (
    compare_segments,
    compare_waiting,
    compare_watermark,
)
from headwater.sim.campaigns.delays.log_model import LogModel
from headwater.sim.campaigns.delays.log_scan import scan_log
from headwater.sim.campaigns.delays.log_writer import DELAYS_MS, SENDER_IDS, LogWriter
from headwater.sim.campaigns.delays.lone_partition import LonePartition
from headwater.sim.campaigns.logs import DIRECTORY, PARTITION
from headwater.sim.checkers.delivery_model import DeliveryModel
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.sim.disk.trace import note_contents, note_operations
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import LogStorageError
from headwater.storage.inspection.verify.verify import verify_directory
from headwater.storage.log_config import DelayMode, DelayRules, LogConfig
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.retention import apply_retention, delete_records_before
from headwater.storage.truncation import truncate_to

T = TypeVar("T")

_HOUR_MS = 3_600_000
_STEPS_MS = (0, 1, 20, 300, 2_000, 30_000, 100_000, _HOUR_MS, 26 * _HOUR_MS)
_ROUNDS_MAX = 400


class DelayLogCampaign:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.config = LogConfig(
            segment_bytes=300_000,
            index_interval_bytes=self.rng.choice((1, 200, 4096)),
            retention_ms=self.rng.choice((-1, 60_000, _HOUR_MS)),
            retention_bytes=self.rng.choice((-1, -1, 4_000)),
            message_timestamp_after_max_ms=LONG_MAX,
            file_delete_delay_ms=0,
            delay=DelayRules(DelayMode.HEADER),
        )
        self.loop = VirtualLoop()
        self.clock = SimulatedClock(self.loop)
        self.disk = FaultyDisk(seed, clock=self.clock, directories=["/data"])
        self.trace = Trace(self.loop.time)
        #: Either clocks are set back, or records are deleted on purpose. After both, a log that has
        #: lost its power may have forgotten that something was delivered that was due later.
        self.goes_back = self.rng.random() < 0.5
        #: If a log begins between a cancellation and its commit, it does not tell of it any more.
        keeps_all = self.goes_back and self.config.retention_ms == self.config.retention_bytes == -1
        self.has_small_bounds = self.rng.random() < 0.5
        self.leader_epoch = -1
        self.crash_count = 0
        self.rescan_count = 0
        self.recovery_point = 0
        self.kept_start = 0
        self._told = LogModel()
        self._writer = LogWriter(
            self.rng, self.clock, self._some_offset, cancels_in_transactions=keeps_all
        )
        self._open(is_clean=False)

    @property
    def model(self) -> DeliveryModel:
        return self._told.model

    # -- lives -----------------------------------------------------------------------------------

    def _open(self, *, is_clean: bool) -> None:
        self.log = LogLoader(
            PARTITION,
            DIRECTORY,
            self.config,
            self.disk,
            HandleCache(self.disk, self.rng.choice((3, 50))),
            now_ms=self.clock.wall_ms(),
            is_clean=is_clean,
            recovery_point=self.recovery_point,
            log_start_offset=self.kept_start,
            keep_recovery_point=self._keep_recovery_point,
            keep_log_start=self._keep_log_start,
        ).load()
        # As a lone replica: what it has is all there is.
        self.log.raise_high_watermark(self.log.log_end_offset)
        self.partition = LonePartition(self.log)
        self.partition.leader_epoch = self._next_epoch()
        environment = DelayEnvironment(self.clock, _run_at_once, BackgroundTasks(), NoMoves())
        self.delays = PartitionDelays(cast(Partition, self.partition), environment)
        self.partition.deliveries = self.delays
        self._writer.partition = self.partition
        self._told.log = self.log

    def _next_epoch(self) -> int:
        """The controller never gives one twice, whatever a log has lost."""
        self.leader_epoch += 1
        return self.leader_epoch

    def _keep_recovery_point(self, offset: int) -> None:
        self.recovery_point = offset

    def _keep_log_start(self, offset: int) -> None:
        self.kept_start = offset

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    # -- the campaign ----------------------------------------------------------------------------

    def run(self, step_count: int = 120) -> str:
        """Raises AssertionError, its first line the seed; returns the hash of the trace."""
        with small_bounds() if self.has_small_bounds else nullcontext():
            return self._run(step_count)

    def _run(self, step_count: int) -> str:
        try:
            for _ in range(step_count):
                self.step()
            self.deliver_everything()
            note_operations(self.trace, self.disk)
            note_contents(self.trace, self.disk)
            return self.trace.hash
        except Exception as error:
            raise AssertionError(
                f"seed {self.seed} with {self.config}\n{error!r}\n{self.trace.latest()}"
            ) from error
        finally:
            self.loop.close()

    def step(self) -> None:
        steps = self.steps()
        step = self.rng.choices([each for each, _ in steps], [each for _, each in steps])[0]
        cut = self.rng.random() < 0.03
        self.trace.note("step", step.__name__ + (" with the power going" if cut else ""))
        self.partition.appends_left = 0 if self.rng.random() < 0.04 else None
        if cut:
            self.disk.before_operation = PowerCut(self.rng.randrange(12))
        try:
            step()
        except SimulatedCrash:
            pass
        except LogStorageError as error:
            self.trace.note("step", f"fails: {error}")
        finally:
            self.partition.appends_left = None
            self.disk.before_operation = None
        if cut:
            self.crash()
        self.compare()

    def steps(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._writer.send, 40),
            (self._writer.end_transaction, 12),
            (self.change, 12),
            (self.deliver, 30),
            (self.let_time_pass, 25),
            (self.set_clock, 2),
            (self.replicate, 12),
            (self.seal, 10),
            (self.retain, 16),
            (self.delete_records, 3),
            (self.save, 6),
            (self.cut_off, 4),
            (self.read_anew, 10),
            (self.reopen, 3),
            (self.crash, 2),
        ]

    # -- what happens ----------------------------------------------------------------------------

    def _some_offset(self) -> int:
        """Mostly that of a message that waits."""
        names = list(self.model.waiting)
        if names and self.rng.random() < 0.8:
            return self.rng.choice(names)
        return self.rng.randrange(self.log.log_end_offset + 3)

    def change(self) -> None:
        kind = self.rng.choice(list(ChangeKind))
        sender_id = self.rng.choice(SENDER_IDS)
        name = MessageName(sender_id=sender_id) if sender_id else MessageName(self._some_offset())
        now_ms = self.clock.wall_ms()
        due_ms = now_ms + self.rng.choice(DELAYS_MS)
        try:
            self.delays.answers.change([DelayChange(kind, name, due_ms)], acks=1, now_ms=now_ms)
        except LogStorageError:
            raise
        except KafkaError:
            return  # It is not ready.

    def deliver(self) -> None:
        """Rounds of the broker's, until it has nothing more to do."""
        for _ in range(_ROUNDS_MAX):
            pause_s = self._await(self.delays._round())
            self._told.tell()
            if pause_s > 0:
                return
        raise AssertionError(f"{_ROUNDS_MAX} rounds are not enough")

    def let_time_pass(self) -> None:
        ms = self.rng.choice(_STEPS_MS) * self.rng.random()
        self._await(asyncio.sleep(ms / 1000))

    def set_clock(self) -> None:
        ahead_ms = (2_000, _HOUR_MS)
        back_ms = (-_HOUR_MS, -2_000) if self.goes_back else ()
        self.clock.shift_wall(self.rng.choice((*ahead_ms, *back_ms)))

    def replicate(self) -> None:
        log = self.log
        log.raise_high_watermark(self.rng.randint(log.high_watermark, log.log_end_offset))
        self.partition.is_leader = self.rng.random() < 0.9

    def seal(self) -> None:
        if self.log.segments.active.size_bytes > 0:
            self.log.roll(self.clock.wall_ms())

    def retain(self) -> None:
        apply_retention(self.log, self.clock.wall_ms())
        self.log.retired.remove_due(self.clock.wall_ms())

    def delete_records(self) -> None:
        if self.goes_back:
            return
        log = self.log
        delete_records_before(log, self.rng.randint(log.log_start_offset, log.high_watermark))
        # Of what a crash brings back, nobody could say whether it waits.
        self.kept_start = self.log.log_start_offset

    def save(self) -> None:
        """A checkpoint of what waits."""
        if self.rng.random() < 0.5:
            self.log.flush()
            self.recovery_point = self.log.recovery_point
        if self.delays._state is not None:
            self._await(self.delays.checkpointing.save(self.delays._state))

    def cut_off(self) -> None:
        """Another leads, and does not have all of this."""
        self.partition.is_leader = False
        log = self.log
        offset = self.rng.randint(log.high_watermark, log.log_end_offset)
        truncate_to(log, offset, self.clock.wall_ms())
        self._told.forget_behind(log.log_end_offset)
        self.delays.truncated()
        self._writer.renew_producers()
        if self.rng.random() < 0.5:
            self.deliver()
        self.partition.leader_epoch = self._next_epoch()
        self.partition.is_leader = True

    def reopen(self) -> None:
        self.delays._is_closing = True
        if self.delays._state is not None:
            self._await(self.delays.checkpointing.save(self.delays._state))
        self.log.close()
        self.recovery_point, self.kept_start = self.log.recovery_point, self.log.log_start_offset
        self._open(is_clean=True)

    def crash(self) -> None:
        """The power goes: all that was not synced may be gone."""
        self.crash_count += 1
        self.disk = self.disk.crash(self.rng)
        self._open(is_clean=False)
        self._told.forget_behind(self.log.log_end_offset)
        self._writer.renew_producers()

    # -- what must hold --------------------------------------------------------------------------

    def compare(self) -> None:
        self._told.tell()
        state = self.delays._state
        if state is None or not state.waiting.is_complete:
            return
        model = self.model
        if self.partition.is_leader:
            state.follow_at_once()
        elif state.applied_offset != model.end:
            model = self._told.model_at(state.applied_offset)
        start = self.log.log_start_offset
        compare_waiting("what was kept", start, state, model)
        compare_watermark(start, state, model)
        compare_segments(start, state, model)

    def read_anew(self) -> None:
        """The log alone says the same; so do its checkpoint and what comes behind it."""
        self.compare()
        self.rescan_count += 1
        end_offset = self.log.log_end_offset
        model = self.model
        start = self.log.log_start_offset
        scanned = scan_log(self.log, self.disk, self.clock, from_checkpoint=False)
        compare_waiting("the log read anew", start, scanned, model)
        compare_watermark(start, scanned, model)
        state = self.delays._state
        if state is not None and state.waiting.is_complete and end_offset == state.applied_offset:
            checkpointed = scan_log(self.log, self.disk, self.clock, from_checkpoint=True)
            compare_waiting("the log read from its checkpoint", start, checkpointed, model)

    def deliver_everything(self) -> None:
        """In the end all that waits is delivered, and the files are in order."""
        self.partition.is_leader = True
        for _ in range(40):
            self.log.raise_high_watermark(self.log.log_end_offset)
            self.deliver()
            self.compare()
            if not self.model.order():
                break
            self._await(asyncio.sleep(4 * _HOUR_MS / 1000))
        assert not self.model.order(), f"{self.model.order()} are not delivered"
        self.read_anew()
        self.log.close()  # What it hides at its end is in its index from then on.
        problems = [each for each in verify_directory(self.disk, DIRECTORY) if each.is_problem]
        assert not problems, problems


async def _run_at_once(work: Callable[[], T]) -> T:
    return work()
