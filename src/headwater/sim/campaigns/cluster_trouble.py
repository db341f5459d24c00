"""What befalls the brokers of a simulated cluster, and how it ends.

Several things happen at once, each to a broker of its own: the broker is killed, loses its power,
stops in order, stands still, is cut off from others or from the metadata store, loses its session,
has a slow disk, is left alone and then loses its power. Each goes over by itself after a while.

The fault model is that of the durability promise: of every ISR of two or more, one member at least
does not lose what it has not synced before the others are out of the ISR or have caught up. Killed
brokers lose nothing, and all of them may be killed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from headwater.base.ids import TopicPartition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.cluster_world import BROKER_COUNT, ClusterWorld
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.network.network import NetworkConditions

REPLICATION_FACTOR = 3

#: Far longer than anything that happens takes to go over.
_TROUBLE_S_MAX = 120.0
#: How long a broker that is gone may stay in sync.
_SESSION_S_MAX = 6.0

Event = Callable[[BrokerHost], Awaitable[None]]


class ClusterTrouble:
    def __init__(
        self, world: ClusterWorld, random: Random, on_set_back: Callable[[TopicPartition], None]
    ) -> None:
        """`on_set_back` hears of partitions whose only replica in sync may have lost its end."""
        self.counts: dict[str, int] = {}
        self._world = world
        self._random = random
        self._on_set_back = on_set_back
        #: By the broker that something happens to at present.
        self._happening: dict[BrokerHost, asyncio.Task[None]] = {}

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
            (self.leave_alone, 1),
        ]

    # -- how it goes on --------------------------------------------------------------------------

    def make_network_bad(self) -> None:
        random = self._random
        self._world.network.conditions = NetworkConditions(
            delay_ms_max=random.choice((0.5, 5.0, 40.0)),
            slow_probability=random.choice((0.0, 0.02)),
            loss_probability=random.choice((0.0, 0.0, 0.001)),
            connect_timeout_ms=2_000.0,
            silence_ms_max=random.choice((1.0, 3_000.0)),
        )

    async def start_all(self) -> None:
        await asyncio.gather(*(self._start(host) for host in self._world.hosts))

    def happen(self) -> None:
        """Let something happen to some broker, unless something does already."""
        self.check()
        host = self._random.choice(self._world.hosts)
        events = self.events()
        event = self._random.choices([each for each, _ in events], [each for _, each in events])
        if host not in self._happening:
            self._begin(event[0], host)

    def check(self) -> None:
        """Raise what went wrong, and forget what is over."""
        for host, task in list(self._happening.items()):
            if task.done():
                task.result()
                del self._happening[host]

    async def heal(self, partitions: Sequence[TopicPartition], time_max_s: float) -> None:
        """Let it all be over, and wait until every replica is in sync again."""
        over_s = self._world.loop.time() + _TROUBLE_S_MAX
        while self._happening:
            if self._world.loop.time() > over_s:
                late = [host.name for host in self._happening]
                raise PropertyViolated(f"in a healed world brokers come back: {late} do not")
            await asyncio.wait(self._happening.values(), timeout=1.0)
            self.check()
        self._world.network.conditions = NetworkConditions()
        self._world.network.heal()
        await self.wait_until_whole(partitions, time_max_s)

    async def wait_until_whole(
        self, partitions: Sequence[TopicPartition], time_max_s: float
    ) -> None:
        """Until every replica is in sync, and readers are shown all that there is."""
        observer, end_s = self._world.observer, self._world.loop.time() + time_max_s
        while not all(observer.is_whole(each) for each in partitions):
            if self._world.loop.time() > end_s:
                states = {str(each): observer.states.get(each) for each in partitions}
                raise PropertyViolated(
                    f"in a healed world all replicas get in sync, but within {time_max_s:g} s they "
                    f"are {states}"
                )
            await asyncio.sleep(0.2)

    def _begin(self, event: Event, host: BrokerHost) -> None:
        name = getattr(event, "__name__", "event")
        self.counts[name] = self.counts.get(name, 0) + 1
        self._world.trace.note("campaign", f"{name} {host.name}")
        self._happening[host] = self._world.loop.create_task(_run(event(host)))

    async def _start(self, host: BrokerHost) -> None:
        """Start a broker, however often that has to be tried."""
        while not await host.start():
            await asyncio.sleep(0.5)

    async def _some_time(self, seconds_max: float = 8.0) -> None:
        await asyncio.sleep(self._random.choice((0.1, 1.0)) * seconds_max * self._random.random())

    async def _come_back(self, host: BrokerHost) -> None:
        await self._some_time()
        await self._start(host)

    # -- what happens ----------------------------------------------------------------------------

    async def kill(self, host: BrokerHost) -> None:
        host.kill()
        await self._come_back(host)

    async def kill_all(self, host: BrokerHost) -> None:
        """All brokers that nothing else happens to end at once; they come back as they like."""
        host.kill()
        for other in self._world.hosts:
            if other not in self._happening:
                other.kill()
                self._begin(self._come_back, other)
        await self._come_back(host)

    async def leave_alone(self, host: BrokerHost) -> None:
        """The others end for long; when nobody else is in sync any more, the power goes."""
        for other in self._world.hosts:
            if other is not host and other not in self._happening:
                self._begin(self.end_for_long, other)
        await asyncio.sleep(_SESSION_S_MAX + 1.0)
        await self.lose_power(host)

    async def end_for_long(self, host: BrokerHost) -> None:
        host.kill()
        await asyncio.sleep(_SESSION_S_MAX + 2.0)
        await self._start(host)

    async def lose_power(self, host: BrokerHost) -> None:
        if self._random.random() < 0.2:
            host.kill()
            await self._some_time(1.0)
        if self.may_lose_power(host):
            for partition in self._world.observer.power_lost(self._world.hosts.index(host)):
                self._on_set_back(partition)
            host.lose_power()
        elif host.is_up:
            host.kill()
        await self._come_back(host)

    def may_lose_power(self, host: BrokerHost) -> bool:
        """Whether the durability promise covers it."""
        return self._world.observer.may_lose_power(self._world.hosts.index(host))

    async def stop(self, host: BrokerHost) -> None:
        if await host.stop():
            await self._come_back(host)

    async def pause(self, host: BrokerHost) -> None:
        host.pause()
        await self._some_time(12.0)
        host.resume()

    async def cut_off_from_brokers(self, host: BrokerHost) -> None:
        await self._cut_off(host, self._world.other_brokers(host))

    async def cut_off_from_one(self, host: BrokerHost) -> None:
        await self._cut_off(host, [self._random.choice(self._world.other_brokers(host))])

    async def cut_off_from_store(self, host: BrokerHost) -> None:
        await self._cut_off(host, [self._world.store_host])

    async def _cut_off(self, host: BrokerHost, others: list[str]) -> None:
        cuts = self._world.cut_off(host, others)
        await self._some_time(12.0)
        self._world.mend(cuts)

    async def expire_session(self, host: BrokerHost) -> None:
        self._world.expire_session(host)

    async def slow_disk(self, host: BrokerHost) -> None:
        usual_s, host.thread_delay_s_max = host.thread_delay_s_max, 1.5
        await self._some_time()
        host.thread_delay_s_max = usual_s

    async def break_connections(self, host: BrokerHost) -> None:
        for transport in list(self._world.network.transports):
            if host.name == transport.process.host and self._random.random() < 0.5:
                self._world.network.break_connection(transport)


async def _run(event: Awaitable[None]) -> None:
    await event


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
            "zookeeper.session.timeout.ms": rng.choice(("2000", f"{_SESSION_S_MAX * 1000:.0f}")),
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

    def world(self, seed: int, *, broker_count: int = BROKER_COUNT) -> ClusterWorld:
        return ClusterWorld(
            seed,
            self.settings,
            broker_count=broker_count,
            timer_lateness_ms=self.lateness_ms,
            thread_delay_ms_max=self.thread_delay_ms_max,
            is_cautious=self.is_cautious,
        )
