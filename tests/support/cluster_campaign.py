"""A seeded campaign against three brokers in a simulated world.

Producers write with acks=all to topics of three replicas, two of which must be in sync; others with
acks=1, whose records may be lost. Readers follow the leaders. Meanwhile brokers are killed, lose
their power, stop in order, stand still, are cut off from each other and from the metadata store,
lose their sessions, and have slow disks. Then the world is healed: every partition gets all of its
replicas back in sync, everybody gets done, and what is there must be what was promised.

The fault model is that of the durability promise: of every ISR of two or more, one member at least
does not lose what it has not synced before the others are out of the ISR or have caught up. Killed
brokers lose nothing, and all of them may be killed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.checkers.every_promise import check_every_promise
from headwater.sim.checkers.unseen_after_healing import check_everything_seen
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.history import Contents, PropertyViolated
from headwater.sim.network import NetworkConditions
from headwater.sim.producing_client import ProducingClient
from headwater.sim.reading_client import ReadingClient
from headwater.sim.topic_client import TopicClient
from headwater.sim.virtual_loop import SimulationDeadlock, SimulationLivelock

#: Virtual seconds that everybody has to get done once nothing fails any more.
HEALED_TIME_MAX_S = 300.0
REPLICATION_FACTOR = 3
_LOOK_INTERVAL_S = 0.05
#: More than a producer gets done before it is told to finish.
_BATCHES_MAX = 10_000

Event = Callable[[BrokerHost], Awaitable[None]]


class Follower(NamedTuple):
    """A reader that was there all along."""

    name: str
    partition: TopicPartition
    client: ReadingClient


class ClusterCampaign:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        choices = self.choose(seed)
        self.world = ClusterWorld(
            seed,
            choices.settings,
            timer_lateness_ms=choices.lateness_ms,
            thread_delay_ms_max=choices.thread_delay_ms_max,
            is_cautious=choices.is_cautious,
        )
        self.random = self.world.random.child("campaign").generator
        self.partitions: list[TopicPartition] = []
        self.event_counts: dict[str, int] = {}
        self._thread_delay_ms_max = choices.thread_delay_ms_max
        self._followers: list[Follower] = []
        self._producers: list[ProducingClient] = []
        self._working: list[asyncio.Task[Any]] = []
        self._endless: list[asyncio.Task[Any]] = []
        #: What happens to brokers at present, by the broker it happens to.
        self._happening: dict[BrokerHost, asyncio.Task[None]] = {}

    def choose(self, seed: int) -> ClusterChoices:
        """What has to be known before there is a world."""
        return ClusterChoices(seed)

    @property
    def crash_count(self) -> int:
        return self.world.crash_count

    def run(self, event_count: int = 8) -> str:
        """Raises AssertionError, its first line the seed; returns the hash of the trace."""
        world = self.world
        try:
            world.run(self._run(event_count))
            world.check_no_failure()
            return world.trace.hash
        except (Exception, SimulationDeadlock, SimulationLivelock) as error:
            raise AssertionError(f"seed {self.seed}\n{error!r}\n{world.trace.latest()}") from error
        finally:
            world.close()

    async def _run(self, event_count: int) -> None:
        self._make_network_bad()
        looking = self.world.loop.create_task(self._look())
        try:
            await asyncio.gather(*(self._start(host) for host in self.world.hosts))
            await self._start_clients()
            await self._let_things_happen(event_count)
            await self._heal()
            await self._finish_clients()
            await self._check_end()
        finally:
            looking.cancel()

    async def _look(self) -> None:
        """See to it that no promise is broken that only an observer of all brokers can check."""
        while True:
            self.world.observer.look()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    def _make_network_bad(self) -> None:
        random = self.random
        self.world.network.conditions = NetworkConditions(
            delay_ms_max=random.choice((0.5, 5.0, 40.0)),
            slow_probability=random.choice((0.0, 0.02)),
            loss_probability=random.choice((0.0, 0.0, 0.001)),
            connect_timeout_ms=2_000.0,
            silence_ms_max=random.choice((1.0, 3_000.0)),
        )

    # -- clients ---------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        random = self.random
        for number in range(random.randint(1, 2)):
            self.partitions += await self._create_topic(f"topic-{number}", random.randint(1, 2))
        for number in range(random.randint(2, 3)):
            self._start_producer(
                random.choice(self.partitions), is_idempotent=number != 1, acks=1 if number else -1
            )
        for partition in self.partitions:
            process, link = self.world.start_client("reader", partition)
            reader = ReadingClient(link, self.world.history, [partition])
            self._followers.append(Follower(link.name, partition, reader))
            self._start_task(process.run, reader.follow(), self._endless)

    async def _create_topic(self, name: str, partition_count: int) -> list[TopicPartition]:
        process, link = self.world.start_client("admin")
        admin = TopicClient(link, self.world.history, replication_factor=REPLICATION_FACTOR)
        async with asyncio.timeout(HEALED_TIME_MAX_S):
            return await process.run(
                self.world.loop.create_task, admin.create(name, partition_count)
            )

    def _start_producer(self, partition: TopicPartition, *, is_idempotent: bool, acks: int) -> None:
        process, link = self.world.start_client("producer", partition)
        client = ProducingClient(
            link, self.world.history, partition, is_idempotent=is_idempotent, acks=acks
        )
        self._producers.append(client)
        work = client.run(_BATCHES_MAX, pace_s_max=self.random.choice((0.1, 0.5)))
        self._start_task(process.run, work, self._working)

    def _start_task(
        self,
        run_as: Callable[..., asyncio.Task[Any]],
        work: Coroutine[Any, Any, Any],
        tasks: list[asyncio.Task[Any]],
    ) -> None:
        tasks.append(run_as(self.world.loop.create_task, work))

    def _check_tasks(self) -> None:
        for task in (*self._working, *self._endless, *self._happening.values()):
            if task.done():
                task.result()

    # -- what happens ----------------------------------------------------------------------------

    def events(self) -> list[tuple[Event, int]]:
        return [
            (self.kill, 4),
            (self.lose_power, 4),
            (self.stop, 2),
            (self.pause, 3),
            (self.cut_off_from_brokers, 3),
            (self.cut_off_from_one, 2),
            (self.cut_off_from_store, 3),
            (self.expire_session, 3),
            (self.slow_disk, 2),
            (self.break_connections, 2),
            (self.kill_all, 1),
        ]

    async def _let_things_happen(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(self.random.choice((0.1, 1.0, 4.0)) * self.random.random())
            self._check_tasks()
            self._forget_past()
            host = self.random.choice(self.world.hosts)
            events = self.events()
            event = self.random.choices([each for each, _ in events], [each for _, each in events])
            if host not in self._happening:
                self._begin(event[0], host)
            self.world.observer.compare_logs()
        while self._happening:
            await asyncio.wait(self._happening.values(), timeout=1.0)
            self._check_tasks()
            self._forget_past()

    def _begin(self, event: Event, host: BrokerHost) -> None:
        name = getattr(event, "__name__", "event")
        self.event_counts[name] = self.event_counts.get(name, 0) + 1
        self.world.trace.note("campaign", f"{name} {host.name}")
        self._happening[host] = self.world.loop.create_task(self._as_task(event(host)))

    async def _as_task(self, work: Awaitable[None]) -> None:
        await work

    def _forget_past(self) -> None:
        for host, task in list(self._happening.items()):
            if task.done():
                del self._happening[host]

    async def _start(self, host: BrokerHost) -> None:
        """Start a broker, however often that has to be tried."""
        while not await host.start():
            if not host.is_up:
                await asyncio.sleep(0.5)

    async def _some_time(self, seconds_max: float = 8.0) -> None:
        await asyncio.sleep(self.random.choice((0.1, 1.0)) * seconds_max * self.random.random())

    async def kill(self, host: BrokerHost) -> None:
        host.kill()
        await self._come_back(host)

    async def kill_all(self, _host: BrokerHost) -> None:
        """All brokers that nothing else happens to end at once; they come back as they like."""
        for host in self.world.hosts:
            if host not in self._happening or host is _host:
                if host.is_up:
                    host.kill()
                if host is not _host:
                    self._begin(self._come_back, host)
        await self._come_back(_host)

    async def _come_back(self, host: BrokerHost) -> None:
        await self._some_time()
        await self._start(host)

    async def lose_power(self, host: BrokerHost) -> None:
        if self.random.random() < 0.2:
            host.kill()
            await self._some_time(1.0)
        if self.may_lose_power(host):
            for partition in self.world.observer.power_lost(self._id(host)):
                self._set_back(partition)
            host.lose_power()
        elif host.is_up:
            host.kill()
        await self._come_back(host)

    def may_lose_power(self, host: BrokerHost) -> bool:
        """Whether the durability promise covers it."""
        return self.world.observer.may_lose_power(self._id(host))

    def _set_back(self, partition: TopicPartition) -> None:
        for follower in self._followers:
            if follower.partition == partition:
                follower.client.power_lost()

    def _id(self, host: BrokerHost) -> int:
        return self.world.hosts.index(host)

    async def stop(self, host: BrokerHost) -> None:
        if host.serves:
            await host.stop()
        await self._some_time()
        if not host.is_up:
            await self._start(host)

    async def pause(self, host: BrokerHost) -> None:
        host.pause()
        await self._some_time(12.0)
        host.resume()

    async def cut_off_from_brokers(self, host: BrokerHost) -> None:
        await self._cut_off(host, self.world.other_brokers(host))

    async def cut_off_from_one(self, host: BrokerHost) -> None:
        await self._cut_off(host, [self.random.choice(self.world.other_brokers(host))])

    async def cut_off_from_store(self, host: BrokerHost) -> None:
        await self._cut_off(host, [self.world.store_host])

    async def _cut_off(self, host: BrokerHost, others: list[str]) -> None:
        cuts = self.world.cut_off(host, others)
        await self._some_time(12.0)
        self.world.mend(cuts)

    async def expire_session(self, host: BrokerHost) -> None:
        self.world.expire_session(host)

    async def slow_disk(self, host: BrokerHost) -> None:
        host.thread_delay_s_max = 1.5
        await self._some_time()
        host.thread_delay_s_max = self._thread_delay_ms_max / 1000

    async def break_connections(self, host: BrokerHost) -> None:
        for transport in list(self.world.network.transports):
            if host.name == transport.process.host and self.random.random() < 0.5:
                self.world.network.break_connection(transport)

    # -- the end ---------------------------------------------------------------------------------

    async def _heal(self) -> None:
        self.world.network.conditions = NetworkConditions()
        self.world.network.heal()
        end_s = self.world.loop.time() + HEALED_TIME_MAX_S
        while not all(
            self.world.observer.isr_is_full(partition, REPLICATION_FACTOR)
            for partition in self.partitions
        ):
            self._check_tasks()
            if self.world.loop.time() > end_s:
                states = {each: self.world.observer.states.get(each) for each in self.partitions}
                raise PropertyViolated(
                    f"in a healed world all replicas get in sync, but within "
                    f"{HEALED_TIME_MAX_S:g} s they are {states}"
                )
            await asyncio.sleep(0.2)

    async def _finish_clients(self) -> None:
        for producer in self._producers:
            producer.finish()
        done, late = await asyncio.wait(self._working, timeout=HEALED_TIME_MAX_S)
        for task in (*done, *(task for task in self._endless if task.done())):
            task.result()
        if late:
            raise PropertyViolated(
                f"in a healed world everybody gets done: {len(late)} producers do not within "
                f"{HEALED_TIME_MAX_S:g} s"
            )

    async def _check_end(self) -> None:
        contents, topics = await self._read_everything()
        check_every_promise(self.world.history, contents, topics)
        await self._check_followers(contents)
        for task in self._endless:
            task.cancel()
        if self._endless:
            await asyncio.wait(self._endless)
        self.world.observer.look()
        self.world.observer.compare_logs()

    async def _read_everything(self) -> tuple[Contents, dict[str, Any]]:
        """What is there in the end, read by somebody who comes new."""
        world = self.world
        reading = []
        for partition in self.partitions:
            process, link = world.start_client("reader", partition)
            client = ReadingClient(link, world.history, [partition])
            reading.append(process.run(world.loop.create_task, client.read_all()))
        process, link = world.start_client("admin")
        asking = process.run(world.loop.create_task, TopicClient(link, world.history).topics())
        contents: dict[TopicPartition, Any] = {}
        async with asyncio.timeout(HEALED_TIME_MAX_S):
            for found in await asyncio.gather(*reading):
                contents |= found
            return contents, await asking

    async def _check_followers(self, contents: Contents) -> None:
        """Those who read all along get to the end too, and saw the same."""
        end_s = self.world.loop.time() + HEALED_TIME_MAX_S
        for follower in self._followers:
            read = follower.client.read
            while (
                len(read[follower.partition]) < len(contents[follower.partition])
                and self.world.loop.time() < end_s
            ):
                self._check_tasks()
                await asyncio.sleep(0.1)
            check_everything_seen(follower.name, read, contents)


class ClusterChoices:
    """What a seed chooses before there is a world to ask."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.lateness_ms = rng.choice((0.0, 2.0, 30.0))
        self.thread_delay_ms_max = rng.choice((3.0, 3.0, 100.0))
        self.is_cautious = rng.random() < 0.5
        self.settings = {
            "default.replication.factor": str(REPLICATION_FACTOR),
            "min.insync.replicas": "2",
            "auto.create.topics.enable": "false",
            "zookeeper.session.timeout.ms": rng.choice(("2000", "6000")),
            "replica.lag.time.max.ms": rng.choice(("1500", "4000")),
            "replica.fetch.wait.max.ms": rng.choice(("100", "500")),
            "replica.fetch.backoff.ms": rng.choice(("50", "500")),
            "replica.socket.timeout.ms": "2000",
            "controlled.shutdown.retry.backoff.ms": "500",
            "log.roll.ms": rng.choice(("1000", "604800000")),
            "log.message.timestamp.after.max.ms": "9223372036854775807",
            "log.index.interval.bytes": rng.choice(("1", "4096")),
            "log.retention.ms": "-1",
            "log.flush.offset.checkpoint.interval.ms": rng.choice(("100", "60000")),
            "replica.high.watermark.checkpoint.interval.ms": rng.choice(("100", "5000")),
            "log.initial.task.delay.ms": "10",
        }
