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
from dataclasses import dataclass, field
from random import Random
from typing import Any

from headwater.base.durations import LONG_MAX
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delay.waiting import ChangeKind, DelayChange, MessageName
from headwater.replication.partition.partition import Partition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.campaigns import cluster
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import (
    REPLICATION_FACTOR,
    ClusterChoices,
    ClusterTrouble,
    Event,
)
from headwater.sim.campaigns.delay_bounds import small_bounds
from headwater.sim.checkers.delivery_model import DeliveryModel
from headwater.sim.clients.delay_writer import SENDER_IDS, DelayWriter
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.clients.visible_reader import VisibleReader
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.disk.faults import SimulatedCrash
from headwater.sim.histories.delay_history import DelayHistory, VisibleRecord
from headwater.sim.histories.history import PropertyViolated
from headwater.storage.partition_log import PartitionLog
from headwater.wire.delayed.copies import OrderKey
from headwater.wire.records import (
    BatchHeader,
    ControlType,
    decode_batch,
    iter_batch_headers,
    read_control_type,
)

#: How wrong the clock of a broker is at most, in some seeds.
_CLOCK_ERROR_MS = 1_500
_HOUR_MS = 3_600_000
_DAY_MS = 25 * _HOUR_MS
#: Longer than a day, so that what comes when a day has passed is there to be read.
_RETENTION_MS = 26 * _HOUR_MS
_DELAYS_MS = (0, 300, 3_000, 8_000, 90_000)
_LONG_DELAYS_MS = (*_DELAYS_MS, 5 * _DAY_MS)
#: Longer than any trouble lasts, so that what is given up was given up wrongly.
_PATIENCE_MS = 10 * 60_000
#: Virtual seconds within which what is due comes in a healed world.
_DELIVERED_S_MAX = 30.0
#: The same for old segments to go.
_RETENTION_S_MAX = 3.0


@dataclass
class WatchedPartition:
    """What was committed in a partition so far, as somebody sees it who misses nothing."""

    partition: TopicPartition
    model: DeliveryModel = field(default_factory=DeliveryModel)
    batches: list[tuple[BatchHeader, bytes]] = field(default_factory=list)
    #: What was seen before a loss of power, and may be gone since.
    doubtful: list[tuple[BatchHeader, bytes]] = field(default_factory=list)
    #: By leader epoch, the end that its consumers were told last.
    visible_ends: dict[int, int] = field(default_factory=dict)
    #: All in front of it was acknowledged to somebody.
    acknowledged_end: int = 0

    def take(self, header: BatchHeader, data: bytes) -> None:
        self.batches.append((header, data))
        self.model.apply(header, data)

    def visible(self, *, committed_only: bool) -> list[VisibleRecord]:
        """All that consumers can ever have seen."""
        found: dict[int, VisibleRecord] = {}
        #: By producer, the offsets of its open transaction.
        undecided: dict[int, list[int]] = {}
        for header, data in self.batches:
            if header.is_delayed:
                continue
            records = decode_batch(data)
            if header.is_control:
                offsets = undecided.pop(header.producer_id, [])
                if committed_only and read_control_type(records[0]) is ControlType.ABORT:
                    for offset in offsets:
                        del found[offset]
                continue
            for record in records:
                found[record.offset] = VisibleRecord(record.offset, record.value or b"")
                if header.is_transactional:
                    undecided.setdefault(header.producer_id, []).append(record.offset)
        return list(found.values())

    def agrees(self, watermark: OrderKey, log: PartitionLog) -> bool:
        """Whether this is what a log says was delivered last; without copies, it need not know."""
        if watermark == self.model.watermark:
            return True
        last = max((copy.offset for copy in self.model.copies.values()), default=-1)
        return last < log.log_start_offset and watermark < self.model.watermark

    def recall(self, log_start: int) -> bool:
        """Whether what is deleted by now was seen before it was in doubt: then it was there."""
        for header, data in self.doubtful:
            if header.base_offset == self.model.end and header.next_offset <= log_start:
                self.take(header, data)
        return self.model.end >= log_start

    def set_back(self, offset: int) -> None:
        """What was at this offset and behind may be gone."""
        self.visible_ends.clear()
        kept = [each for each in self.batches if each[0].next_offset <= offset]
        self.doubtful = self.batches[len(kept) :]
        self.batches, self.model = [], DeliveryModel()
        for header, data in kept:
            self.take(header, data)


class DelayTrouble(ClusterTrouble):
    """Besides, leaders go on alone, the power goes in the middle of something, clocks are set."""

    #: How wrong the clock of a broker may be.
    clock_error_ms = 0

    def events(self) -> list[tuple[Event, int]]:
        return [
            *super().events(),
            (self.isolate, 8),
            (self.lose_power_midway, 4),
            (self.set_clock, 4 if self.clock_error_ms else 0),
        ]

    async def isolate(self, host: BrokerHost) -> None:
        """Nobody but clients reaches it: what it appends until it hears of another leader goes."""
        await self._cut_off(host, [*self._world.other_brokers(host), self._world.store_host])

    async def lose_power_midway(self, host: BrokerHost) -> None:
        host.cut_power_at(self._random.randrange(60))
        await host.wait_down(3.0)
        if not self.may_lose_power(host):
            host.kill()
        await self.lose_power(host)

    async def set_clock(self, host: BrokerHost) -> None:
        error_ms = self._world.clock.wall_ms() - host.clock.wall_ms()
        wrong_ms = self._random.randint(-self.clock_error_ms, self.clock_error_ms)
        host.clock.shift_wall(error_ms + wrong_ms)


class DelayCampaign(ClusterCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.delays = DelayHistory(2 * self._clock_error_ms)
        self.watched: dict[TopicPartition, WatchedPartition] = {}
        self.readers: list[VisibleReader] = []
        #: The first one, which whoever looks next is told too.
        self._violation: PropertyViolated | None = None
        self.change_count = 0
        self.state_count = 0
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
    def delivered_count(self) -> int:
        return sum(len(each.model.copies) for each in self.watched.values())

    @property
    def cancelled_count(self) -> int:
        return sum(len(each.model.cancelled) for each in self.watched.values())

    @property
    def rolled_count(self) -> int:
        return sum(len(each.model.rolled) for each in self.watched.values())

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
            self.watched[partition] = WatchedPartition(partition)
            for committed_only in (False, True):
                process, reader = self._reader(partition, committed_only=committed_only)
                self.readers.append(reader)
                self._start_task(process.run, reader.follow(), self._endless)
        for number in range(random.randint(2, 3)):
            self._start_writer(random.choice(self.partitions), is_transactional=number == 1)
        self._start_task(lambda start, work: start(work), self._change_some(), self._endless)

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
            _LONG_DELAYS_MS if self._days_pass else _DELAYS_MS,
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

    # -- whoever asks leaders for changes --------------------------------------------------------

    async def _change_some(self) -> None:
        while True:
            await asyncio.sleep(self.random.random() * 0.5)
            partition = self.random.choice(self.partitions)
            host, led = self._leader(partition)
            if host is not None and led is not None and not host.is_paused:
                await self._change(host, led)

    def _leader(self, partition: TopicPartition) -> tuple[BrokerHost | None, Partition | None]:
        """Who takes itself for the leader, if anybody does; there may be two."""
        leading = []
        for host in self.world.hosts:
            led = host.server.context.partitions.find(*partition) if host.serves else None
            if led is not None and led.is_leader:
                leading.append((host, led))
        return self.random.choice(leading) if leading else (None, None)

    async def _change(self, host: BrokerHost, led: Partition) -> None:
        random, partition = self.random, led.topic_partition
        kind = random.choice(list(ChangeKind))
        sender_id = random.choice(SENDER_IDS)
        name = MessageName(sender_id=sender_id)
        if not sender_id:
            waiting = list(self.watched[partition].model.waiting)
            if not waiting:
                return
            name = MessageName(random.choice(waiting))
        now_ms = host.clock.wall_ms()
        due_ms = now_ms + int(random.choice(_DELAYS_MS) * random.random())
        earliest_ms = self.world.clock.wall_ms()
        if kind is ChangeKind.RESCHEDULE:
            earliest_ms += due_ms - now_ms
        named = self.delays.named(partition, name.offset, sender_id)
        for message in named:
            if kind is ChangeKind.CANCEL:
                message.may_be_cancelled = True
            elif message.due_ms is not None:
                message.due_ms = min(message.due_ms, earliest_ms)
        epoch, life = led.leader_epoch, host.life_count
        try:
            deliveries = host.server.context.delays.of(led)
            change = DelayChange(kind, name, due_ms)
            (changed,) = host.run(lambda: deliveries.change([change], acks=-1, now_ms=now_ms))
        except (KafkaError, SimulatedCrash):
            return
        if not changed.offsets:
            return
        if await self._is_safe(host, led, epoch, life, changed.end_offset):
            self.change_count += 1
            watched = self.watched[partition]
            watched.acknowledged_end = max(watched.acknowledged_end, changed.end_offset)
            if kind is ChangeKind.CANCEL:
                for message in self.delays.asked.values():
                    if message.partition == partition and message.offset in changed.offsets:
                        message.is_cancelled = True

    async def _is_safe(
        self, host: BrokerHost, led: Partition, epoch: int, life: int, end_offset: int
    ) -> bool:
        """Wait as a handler does; whether the change would be acknowledged."""
        for _ in range(200):
            if host.life_count != life or not host.serves or led.leader_epoch != epoch:
                return False
            try:
                if led.is_acknowledged(end_offset, durably=False):
                    return led.has_enough_in_sync
            except KafkaError:
                return False
            await asyncio.sleep(0.02)
        return False

    # -- what happens ----------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            self.world.observer.look()
            self._watch()
            await asyncio.sleep(0.05)

    async def _let_things_happen(self, count: int) -> None:
        for _ in range(count):
            await super()._let_things_happen(1)
            self._compare_states()
            if self._days_pass and self.random.random() < 0.4 and self._has_seen_all():
                self._pass_day()

    def _has_seen_all(self) -> bool:
        """Whether all that there is was seen: what gets old may be deleted before anybody looks."""
        for partition, watched in self.watched.items():
            _, led = self._leader(partition)
            if led is None or not watched.model.end == led.high_watermark == led.log_end_offset:
                return False
        return True

    def _pass_day(self) -> None:
        self._watch()  # Before it gets old.
        self.world.trace.note("campaign", "a day passes")
        for clock in (self.world.clock, *(host.clock for host in self.world.hosts)):
            clock.shift_wall(_DAY_MS)

    def _set_back(self, partition: TopicPartition) -> None:
        watched = self.watched.get(partition)
        if watched is None:
            return
        offset = max(self.world.history.acknowledged_end(partition), watched.acknowledged_end)
        watched.set_back(offset)
        for reader in self.readers:
            if reader.partition == partition:
                reader.set_back(offset)

    def _watch(self) -> None:
        """Take note of all that leaders have committed since."""
        if self._violation is None:
            try:
                self._watch_leaders()
            except PropertyViolated as violation:
                self._violation = violation
        if self._violation is not None:
            raise self._violation

    def _watch_leaders(self) -> None:
        for partition, watched in self.watched.items():
            state = self.world.observer.states.get(partition)
            host = self.world.hosts[state.leader] if state and state.leader >= 0 else None
            led = host.server.context.partitions.find(*partition) if host and host.serves else None
            if led is None or not led.is_leader:
                continue
            self._watch_end(watched, led)
            while watched.model.end < led.high_watermark:
                log = led.log
                start = log.log_start_offset
                if start > watched.model.end and not watched.recall(start):
                    raise PropertyViolated(f"{partition} was deleted before anybody saw it")
                upper = led.high_watermark
                read = log.read(watched.model.end, 1, upper_offset=upper, min_one_batch=True)
                if read.region is None:
                    break
                data = read.region.read()
                for start, header in iter_batch_headers(data):
                    watched.take(header, data[start : start + header.size_bytes])

    def _watch_end(self, watched: WatchedPartition, led: Partition) -> None:
        epoch, end = led.leader_epoch, led.log.visible_high_watermark
        before = watched.visible_ends.get(epoch, 0)
        if end < before:
            raise PropertyViolated(
                f"the end that consumers are told never goes back: in {watched.partition}, epoch "
                f"{epoch}, it was {before} and is {end}"
            )
        watched.visible_ends[epoch] = end

    def _compare_states(self) -> None:
        """Every replica that has read as far as was committed knows the same of what waits."""
        self._watch()
        for host in self.world.hosts:
            if not host.serves:
                continue
            for partition, delays in host.server.context.delays:
                watched = self.watched.get(partition.topic_partition)
                state = delays._state
                if (
                    watched is None
                    or state is None
                    or not state.waiting.is_complete
                    or state.applied_offset != watched.model.end
                    # One that was replaced may have got as far, on a way of its own.
                    or state.applied_offset > partition.high_watermark
                ):
                    continue
                self.state_count += 1
                start = partition.log.log_start_offset
                keys = state.index.between(0, LONG_MAX, 10**9)
                found = [key for key in keys if key.offset >= start]
                expected = watched.model.order()
                if found != expected or not watched.agrees(state.watermark, partition.log):
                    raise PropertyViolated(
                        f"replicas know what waits: {host.name} has {found} behind "
                        f"{state.watermark} up to {state.applied_offset} in {watched.partition}, "
                        f"and not {expected} behind {watched.model.watermark}"
                    )

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
        for watched in self.watched.values():
            if watched.model.order():
                raise PropertyViolated(f"nothing is lost: {watched.model.order()} still wait")

    async def _wait_delivered(self) -> None:
        """In a healed world what is due comes."""
        end_s = self.world.loop.time() + _DELIVERED_S_MAX
        while True:
            await asyncio.sleep(0.5)
            self._check_tasks()
            self._watch()
            due_ms = self.world.clock.wall_ms() - self._clock_error_ms
            due = [
                key
                for each in self.watched.values()
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
        return all(observer.is_whole(each, REPLICATION_FACTOR) for each in self.partitions)

    async def _check_end(self) -> None:
        self._compare_states()
        fresh = []
        for partition in self.partitions:
            _, led = self._leader(partition)
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
        self._watch()
        self.world.observer.compare_logs()
        self.delays.check(
            {name: each.visible(committed_only=False) for name, each in self.watched.items()},
            {name: each.model.cancelled for name, each in self.watched.items()},
        )
        for reader in (*self.readers, *(reader for reader, _ in fresh)):
            watched = self.watched[reader.partition]
            _check_seen(reader, watched.visible(committed_only=reader.committed_only))

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
