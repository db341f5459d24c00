"""A seeded campaign of delayed deliveries on three brokers in a simulated world.

Programs send messages that ask for delays, in transactions or not, and cancel some; somebody asks
the leaders to cancel, reschedule and deliver others at once, at any moment. Readers follow. The
brokers are in trouble as in `cluster`; besides, their clocks are set, and in some seeds days pass,
so that what waits is moved to new segments and old ones go. In the end all is due, and then:

- nothing was seen early, but for what the brokers' clocks differed;
- all that was acknowledged has been delivered, once, if nobody cancelled it and it did not expire;
- nothing is delivered of which somebody was told that it is cancelled;
- copies are in the order of their keys, and every replica knows the same of what waits;
- every reader has seen the same, and is at the end.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from random import Random
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.campaigns import cluster
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import (
    REPLICATION_FACTOR,
    ClusterChoices,
    ClusterTrouble,
)
from headwater.sim.campaigns.delay_bounds import small_bounds
from headwater.sim.campaigns.delays.changes import DELAYS_MS, DelayChanges
from headwater.sim.campaigns.delays.trouble import DelayTrouble
from headwater.sim.campaigns.delays.watch import DelayWatch
from headwater.sim.campaigns.delays.watched_partition import WatchedPartition
from headwater.sim.clients.delay_writer import DelayWriter
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.clients.visible_reader import VisibleReader
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.delay_history import DelayHistory, VisibleRecord
from headwater.sim.histories.history import PropertyViolated

#: How wrong the clock of a broker is at most, in some seeds.
_CLOCK_ERROR_MS = 1_500
_HOUR_MS = 3_600_000
_DAY_MS = 25 * _HOUR_MS
#: Longer than a day, so that what comes when a day has passed is there to be read.
_RETENTION_MS = 26 * _HOUR_MS
_LONG_DELAYS_MS = (*DELAYS_MS, 5 * _DAY_MS)
#: Longer than any trouble lasts, so that what is given up was given up wrongly.
_PATIENCE_MS = 10 * 60_000
#: Virtual seconds within which what is due comes in a healed world.
_DELIVERED_S_MAX = 30.0
#: The same for old segments to go.
_RETENTION_S_MAX = 3.0


class DelayCampaign(ClusterCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.delays = DelayHistory(2 * self._clock_error_ms)
        self.watch = DelayWatch(self.world, self.random)
        self._changes = DelayChanges(self.world, self.random, self.watch, self.delays)
        self.readers: list[VisibleReader] = []
        #: Partitions of which old segments went.
        self.deleted_count = 0
        self._writers: list[DelayWriter] = []
        #: Whether days pass, so that segments get old with messages that wait.
        self._days_pass = self.random.random() < 0.4
        self._has_small_bounds = self.random.random() < 0.6

    def run(self, event_count: int = 8) -> str:
        with small_bounds() if self._has_small_bounds else nullcontext():
            return super().run(event_count)

    def make_world(self, seed: int) -> ClusterWorld:
        choices, rng = ClusterChoices(seed), Random(f"delays {seed}")
        choices.settings |= {
            "transaction.state.log.replication.factor": str(REPLICATION_FACTOR),
            "transaction.state.log.num.partitions": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "transactional.id.expiration.ms": "2147483647",
            "producer.id.expiration.ms": "2147483647",
            "log.roll.ms": rng.choice(("1000", "5000")),
            "log.retention.check.interval.ms": "1000",
            "log.segment.delete.delay.ms": "500",
        }
        return choices.world(seed)

    def make_trouble(self) -> ClusterTrouble:
        trouble = DelayTrouble(self.world, self.random, self._set_back)
        self._clock_error_ms = trouble.clock_error_ms = self.random.choice((0, _CLOCK_ERROR_MS))
        return trouble

    @property
    def change_count(self) -> int:
        return self._changes.acknowledged_count

    @property
    def state_count(self) -> int:
        return self.watch.state_count

    @property
    def delivered_count(self) -> int:
        return sum(len(each.model.copies) for each in self.watch.partitions.values())

    @property
    def cancelled_count(self) -> int:
        return sum(len(each.model.cancelled) for each in self.watch.partitions.values())

    @property
    def rolled_count(self) -> int:
        return sum(len(each.model.rolled) for each in self.watch.partitions.values())

    # -- clients ---------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        world, random = self.world, self.random
        process, link = world.start_client("admin")
        admin = TopicClient(link, world.history, replication_factor=REPLICATION_FACTOR)
        settings = {
            "delay.mode": "header",
            "retention.ms": str(_RETENTION_MS if self._days_pass else -1),
        }
        async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
            self.partitions = await process.run(
                world.loop.create_task, admin.create("delayed", random.randint(1, 2), settings)
            )
        for partition in self.partitions:
            self.watch.partitions[partition] = WatchedPartition(partition)
            for committed_only in (False, True):
                process, reader = self._reader(partition, committed_only=committed_only)
                self.readers.append(reader)
                self._start_task(process.run, reader.follow(), self._endless)
        for number in range(random.randint(2, 3)):
            self._start_writer(random.choice(self.partitions), is_transactional=number == 1)
        self._start_task(lambda start, work: start(work), self._changes.run(), self._endless)

    def _reader(
        self, partition: TopicPartition, *, committed_only: bool
    ) -> tuple[Any, VisibleReader]:
        process, link = self.world.start_client("reader", partition)
        return process, VisibleReader(
            link, self.world.history, partition, self._see, committed_only=committed_only
        )

    def _see(self, partition: TopicPartition, value: bytes) -> None:
        self.delays.see(partition, value, self.world.clock.wall_ms())

    def _start_writer(self, partition: TopicPartition, *, is_transactional: bool) -> None:
        world, random = self.world, self.random
        process, link = world.start_client("writer")
        writer = DelayWriter(
            link.name,
            world.clock,
            world.history,
            self.delays,
            link.random,
            _LONG_DELAYS_MS if self._days_pass else DELAYS_MS,
        )
        self._writers.append(writer)
        environment = ClientEnvironment(clock=world.clock, generator=Random(random.random()))
        settings: dict[str, Any] = {
            "bootstrap_servers": ",".join(f"{host}:{port}" for host, port in world.addresses),
            "client_id": link.name,
            "request_timeout_ms": random.choice((2_000, 10_000)),
            "delivery_timeout_ms": _PATIENCE_MS,
            "max_block_ms": _PATIENCE_MS,
            "linger_ms": random.choice((0, 5, 50)),
            "compression_type": random.choice(("none", "lz4")),
        }
        if is_transactional:
            settings |= {"transactional_id": link.name, "transaction_timeout_ms": 60_000}

        def make() -> AsyncProducer:
            return in_environment(AsyncProducer, environment)(**settings)

        work = (writer.run_transactions if is_transactional else writer.run)(make, partition)
        self._start_task(process.run, work, self._working)

    # -- what happens ----------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            self.world.observer.look()
            self.watch.look()
            await asyncio.sleep(0.05)

    async def _let_things_happen(self, count: int) -> None:
        for _ in range(count):
            await super()._let_things_happen(1)
            self.watch.compare_states()
            if self._days_pass and self.random.random() < 0.4 and self.watch.has_seen_all():
                self._pass_day()

    def _pass_day(self) -> None:
        self.watch.look()  # Before it gets old.
        self.world.trace.note("campaign", "a day passes")
        for clock in (self.world.clock, *(host.clock for host in self.world.hosts)):
            clock.shift_wall(_DAY_MS)

    def _set_back(self, partition: TopicPartition) -> None:
        watched = self.watch.partitions.get(partition)
        if watched is None:
            return
        offset = max(self.world.history.acknowledged_end(partition), watched.acknowledged_end)
        watched.set_back(offset)
        for reader in self.readers:
            if reader.partition == partition:
                reader.set_back(offset)

    # -- the end ---------------------------------------------------------------------------------

    async def _finish_clients(self) -> None:
        for writer in self._writers:
            writer.finish()
        _, late = await asyncio.wait(self._working, timeout=cluster.HEALED_TIME_MAX_S)
        self._check_tasks()
        if late:
            raise PropertyViolated(f"in a healed world everybody gets done: {len(late)} do not")
        self._endless.pop().cancel()  # Nothing is changed any more.
        for _ in range(6 if self._days_pass else 1):
            await self._wait_delivered()
            self._pass_day()
            await asyncio.sleep(_RETENTION_S_MAX)
        await self._wait_delivered()
        for watched in self.watch.partitions.values():
            if watched.model.order():
                raise PropertyViolated(f"nothing is lost: {watched.model.order()} still wait")

    async def _wait_delivered(self) -> None:
        """In a healed world what is due comes."""
        end_s = self.world.loop.time() + _DELIVERED_S_MAX
        while True:
            await asyncio.sleep(0.5)
            self._check_tasks()
            self.watch.look()
            due_ms = self.world.clock.wall_ms() - self._clock_error_ms
            due = [
                key
                for each in self.watch.partitions.values()
                for key in each.model.order()
                if key.due_ms <= due_ms
            ]
            if not due and self._is_settled():
                return
            if self.world.loop.time() > end_s:
                raise PropertyViolated(
                    f"what is due comes: {due} do not within {_DELIVERED_S_MAX:g} s"
                )

    def _is_settled(self) -> bool:
        observer = self.world.observer
        return all(observer.is_whole(each) for each in self.partitions)

    async def _check_end(self) -> None:
        self.watch.compare_states()
        fresh = []
        for partition in self.partitions:
            _, led = self.watch.leader(partition)
            self.deleted_count += led is not None and led.log_start_offset > 0
            for committed_only in (False, True):
                process, reader = self._reader(partition, committed_only=committed_only)
                fresh.append(
                    (reader, process.run(self.world.loop.create_task, reader.read_to_end()))
                )
        async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
            for _, task in fresh:
                await task
        await self._wait_readers([reader for reader, _ in fresh])
        for task in self._endless:
            task.cancel()
        await asyncio.wait(self._endless)
        self.watch.look()
        self.world.observer.compare_logs()
        watched = self.watch.partitions
        self.delays.check(
            {name: each.visible(committed_only=False) for name, each in watched.items()},
            {name: each.model.cancelled for name, each in watched.items()},
        )
        for reader in (*self.readers, *(reader for reader, _ in fresh)):
            visible = watched[reader.partition].visible(committed_only=reader.committed_only)
            _check_seen(reader, visible)

    async def _wait_readers(self, fresh: list[VisibleReader]) -> None:
        """Those who read all along get as far as those who come new."""
        end_s = self.world.loop.time() + cluster.HEALED_TIME_MAX_S
        for reader, new in zip(self.readers, fresh, strict=True):
            while reader.position < new.position:
                self._check_tasks()
                if self.world.loop.time() > end_s:
                    raise PropertyViolated(
                        f"lag comes to 0: {reader.name} is at {reader.position} and does not get "
                        f"to {new.position}"
                    )
                await asyncio.sleep(0.1)


def _check_seen(reader: VisibleReader, visible: list[VisibleRecord]) -> None:
    """A reader has seen everything once, in order, but what was deleted before it came."""
    expected = [
        each
        for each in visible
        if not any(start <= each.offset < end for start, end in reader.jumps)
    ]
    if reader.seen != expected:
        missing = [each for each in expected if each not in reader.seen]
        raise PropertyViolated(
            f"every reader sees the same: {reader.name} lacks {missing[:3]} of "
            f"{reader.partition} and has seen {len(reader.seen)} of {len(expected)}"
        )
