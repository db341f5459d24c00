"""The campaign of workers, with dead letters that are sent back while all that happens.

Two dead-letter topics have somebody who sends their letters back, in tasks of all kinds, and who
pauses, resumes and stops them: that of the workers, and one that is full from the beginning. These
programs are killed like the others, or stand still while another carries on what they do; brokers
are in trouble, and groups rebalance. Then the world is healed, all letters are sent that nobody has
sent, and:

- each letter is in the target once, as it was, for those who read what is committed;
- the progress of a task never went back, nor behind what its runner was told to be committed;
- as much of each task has arrived as it says;
- a task that was told to stop sent no more, and one that has ended did nothing any more;
- what is promised of workers holds as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.environment import in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.redrive import pace, runner
from headwater.delivery.redrive.tasks import task as tasks
from headwater.delivery.redrive.tasks.task_topic import TASK_TOPIC
from headwater.sim.campaigns import cluster
from headwater.sim.campaigns.cluster_trouble import REPLICATION_FACTOR
from headwater.sim.campaigns.workers import WORKERS, WorkerCampaign
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.handling.redrive_program import RedriveLedger, RedriveProgram
from headwater.sim.handling.redrive_promises import TaskLog, check_sent_once, from_topic
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.process import SimulatedProcess
from headwater.wire.delayed.headers import ORIGIN_HEADER

#: The topic with letters from the beginning, and where all letters go.
OLD = "dlq.old"
TARGET = "mended"

_OLD_COUNT = 30
#: A program has so long to begin with a task before it is killed all the same.
_PATIENCE_S = 5.0
#: How long a program stands still. Less than what `OBEDIENCE_MS` allows.
_STALL_S_MAX = 4.0
#: So many are killed in the healed world, one after the other.
_LAST_KILLS = 4


@dataclass
class Redriving:
    """A program that sends letters back, as a process of its own."""

    process: SimulatedProcess
    task: asyncio.Task[Any]
    program: RedriveProgram


class RedriveCampaign(WorkerCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = Random(f"redrives {seed}")
        self.redrives = [RedriveLedger(source, TARGET) for source in (f"dlq.{WORKERS}", OLD)]
        self.redrive_kill_count = 0
        self.stall_count = 0
        self.letter_count = 0
        self._batch = rng.choice((1, 3, 3, 8))
        self._silence_ms = rng.choice((1_500, 1_500, 3_000))
        self._redriving: list[Redriving] = []
        self._happening: list[asyncio.Task[None]] = []
        self._is_over = False

    def run(self, event_count: int = 8) -> str:
        bounds = (
            (pace, "BATCH_LETTERS_MAX", self._batch),
            (tasks, "SILENCE_MS", self._silence_ms),
            (runner, "BEAT_S", self._silence_ms / 3000),
        )
        with _bounds(bounds):
            return super().run(event_count)

    # -- programs --------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        await super()._start_clients()
        process, link = self.world.start_client("admin")
        admin = TopicClient(link, self.world.history, replication_factor=REPLICATION_FACTOR)
        for name, configs in (
            (OLD, {"errors.deadletterqueue.group.enable": "true"}),
            (TARGET, {}),
        ):
            async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
                self.partitions += await process.run(
                    self.world.loop.create_task,
                    admin.create(name, self.random.randint(1, 2), configs),
                )
        process, link = self.world.start_client("writer")
        self._start_task(process.run, self._write_old(link), self._working)
        for ledger in self.redrives:
            self._start_redriving(ledger)

    async def _write_old(self, link: Any) -> None:
        """Letters of a group that is no more."""
        producer = in_environment(AsyncProducer, self._environment())(
            **self._producer_settings(link.name)
        )
        async with producer:
            for number in range(_OLD_COUNT):
                headers = [(ORIGIN_HEADER, b"legacy-0@%d" % number)]
                key = link.random.choice((b"a", b"b", b"c"))
                await producer.send(OLD, b"old/%d" % number, key, headers=headers)
            await producer.flush()

    def _make_program(self, ledger: RedriveLedger) -> tuple[SimulatedProcess, RedriveProgram]:
        process, link = self.world.start_client("redrive")
        program = RedriveProgram(
            link.name,
            ledger,
            link.random,
            self._environment(),
            self._settings(link.name),
            note=lambda text: self.world.trace.note("redrive", text),
        )
        return process, program

    def _start_redriving(self, ledger: RedriveLedger) -> None:
        process, program = self._make_program(ledger)
        task = process.run(self.world.loop.create_task, program.run())
        self._redriving.append(Redriving(process, task, program))

    # -- what happens ----------------------------------------------------------------------------

    async def _let_things_happen(self, count: int) -> None:
        for _ in range(count):
            await super()._let_things_happen(1)
            events = (self.kill_redriving, self.stall_redriving, None)
            event = self.random.choices(events, (6, 2, 1))[0]
            if event is not None:
                self._happening.append(self.world.loop.create_task(event()))

    def _check_tasks(self) -> None:
        super()._check_tasks()
        for task in (*self._happening, *(each.task for each in self._redriving)):
            if task.done():
                task.result()

    async def _choose(self) -> Redriving | None:
        """One that has ended a transaction just now; if none does in time, any that there is."""
        committed: asyncio.Future[str] = self.world.loop.create_future()
        for ledger in self.redrives:
            ledger.waiting.append(committed)
        await asyncio.wait([committed], timeout=_PATIENCE_S)
        for each in self._redriving:
            if committed.done() and each.program.name == committed.result():
                return each
        return self.random.choice(self._redriving) if self._redriving else None

    async def kill_redriving(self) -> None:
        """A process ends; later another takes its place."""
        chosen = await self._choose()
        # Most likely in the middle of the next one.
        await asyncio.sleep(self.random.random() * self.random.choice((0.01, 0.03, 0.3)))
        if chosen is None or chosen not in self._redriving or self._is_over:
            return
        self._redriving.remove(chosen)
        self.redrive_kill_count += 1
        self.world.trace.note("campaign", f"kill {chosen.program.name}")
        chosen.process.kill()
        await asyncio.sleep(self.random.random() * 2)
        self._start_redriving(chosen.program.ledger)

    async def stall_redriving(self) -> None:
        """A process stands still, and another carries on; then there are two."""
        chosen = await self._choose()
        if chosen is None or chosen not in self._redriving or self._is_over:
            return
        if chosen.process.is_paused:
            return
        self.stall_count += 1
        self.world.trace.note("campaign", f"stall {chosen.program.name}")
        self.world.loop.pause_process(chosen.process)
        same = [each for each in self._redriving if each.program.ledger is chosen.program.ledger]
        if len(same) == 1:
            self._start_redriving(chosen.program.ledger)
        await asyncio.sleep(self.random.random() * _STALL_S_MAX)
        if chosen.process.is_alive:
            self.world.loop.resume_process(chosen.process)

    # -- the end ---------------------------------------------------------------------------------

    async def _finish_clients(self) -> None:
        self._is_over = True
        if self._happening:
            await asyncio.wait(self._happening)
        self._check_tasks()
        await super()._finish_clients()
        await self._end_redriving()

    async def _end_redriving(self) -> None:
        for each in self._redriving:
            each.program.is_finishing = True
        await self._in_time([each.task for each in self._redriving])
        self._redriving.clear()

    async def _read_to_end(self, link: Any) -> list[ConsumerRecord]:
        """Once there are no more letters, all that are left are sent back."""
        records = await super()._read_to_end(link)
        await self._redrive_the_rest()
        self._check_redrives(records, await self._read_redriven(link))
        return records

    async def _redrive_the_rest(self) -> None:
        """What is left is much, and quickly sent: so programs are killed here too."""
        self._is_over = False
        for ledger in self.redrives:
            self._start_redriving(ledger)
        for _ in range(_LAST_KILLS):
            await self.kill_redriving()
        self._is_over = True
        await self._end_redriving()
        last = []
        for ledger in self.redrives:
            process, program = self._make_program(ledger)
            last.append(process.run(self.world.loop.create_task, program.finish()))
        await self._in_time(last)

    async def _in_time(self, working: Sequence[asyncio.Task[Any]]) -> None:
        done, late = await asyncio.wait(working, timeout=cluster.HEALED_TIME_MAX_S)
        for task in working:
            if task in done:
                task.result()
        if late:
            raise PropertyViolated(
                f"in a healed world redrives come to their end: {len(late)} do not within "
                f"{cluster.HEALED_TIME_MAX_S:g} s"
            )

    async def _read_redriven(self, link: Any) -> list[ConsumerRecord]:
        """All that is committed of what was sent, and of what is told of tasks."""
        consumer = in_environment(AsyncConsumer, self._environment())(
            **self._settings(link.name),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        partitions = [each for each in self.partitions if each.topic == TARGET]
        partitions.append(TopicPartition(TASK_TOPIC, 0))
        consumer.assign(partitions)
        records: list[ConsumerRecord] = []
        async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
            while True:
                found = await consumer.poll(0.5)
                records += found
                ends = await consumer.end_offsets(partitions)
                is_at_end = all([await consumer.position(each) >= ends[each] for each in ends])
                if not found and is_at_end:
                    break
        await consumer.close(0.0)
        return records

    def _check_redrives(
        self, letters: Sequence[ConsumerRecord], found: Sequence[ConsumerRecord]
    ) -> None:
        log = TaskLog([record for record in found if record.topic == TASK_TOPIC])
        redriven = [record for record in found if record.topic == TARGET]
        for ledger in self.redrives:
            log.check_progress(ledger.told)
            there = [record for record in letters if record.topic == ledger.source]
            self.letter_count += len(there)
            arrived = from_topic(redriven, ledger.source)
            check_sent_once(ledger.source, there, arrived)
            log.check_counts(ledger.source, arrived)
        log.check_obedience()


@contextmanager
def _bounds(bounds: Sequence[tuple[ModuleType, str, float]]) -> Iterator[None]:
    """So small that there are many transactions, and who is gone is soon missed."""
    usual = [(module, name, getattr(module, name)) for module, name, _ in bounds]
    try:
        for module, name, value in bounds:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in usual:
            setattr(module, name, value)
