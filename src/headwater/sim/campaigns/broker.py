"""A seeded campaign against one broker in a simulated world.

Producers, consumers and an administrator work while the broker is stopped, killed and loses its
power, while connections break and the network is cut, while the disk is full or fails, and while
the wall clock jumps. Then the world is healed: everybody must get done (liveness), and what is read
from start to end must be what was promised (safety). The properties are those of
`headwater.sim.histories.history`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.sim.broker_world import HOST, BrokerWorld
from headwater.sim.checkers.every_promise import check_every_promise
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.disk.faults import Fault
from headwater.sim.histories.history import Contents, PropertyViolated
from headwater.sim.network.network import NetworkConditions
from headwater.sim.virtual_loop import SimulationDeadlock, SimulationLivelock

#: Virtual seconds that everybody has to get done once nothing fails any more.
HEALED_TIME_MAX_S = 300.0


class BrokerCampaign:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.world = self.make_world(seed)
        self.random = self.world.random.child("campaign").generator
        self.readers: list[ReadingClient] = []
        self.partitions: list[TopicPartition] = []
        self._working: list[asyncio.Task[Any]] = []
        self._endless: list[asyncio.Task[Any]] = []

    def make_world(self, seed: int) -> BrokerWorld:
        choices = self.choose(seed)
        return BrokerWorld(
            seed,
            choices.settings,
            timer_lateness_ms=choices.lateness_ms,
            thread_delay_ms_max=choices.thread_delay_ms_max,
        )

    def choose(self, seed: int) -> BrokerWorldChoices:
        """What has to be known before there is a world."""
        return BrokerWorldChoices(seed)

    @property
    def crash_count(self) -> int:
        return self.world.crash_count

    def run(self, event_count: int = 12) -> str:
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
        await self._start()
        await self._start_clients()
        for _ in range(event_count):
            await asyncio.sleep(self.random.choice((0.02, 0.3, 2.0)) * self.random.random())
            await self._check_clients()
            await self.random.choices(
                [event for event, _ in self.events()], [weight for _, weight in self.events()]
            )[0]()
        await self._heal()
        await self._finish_clients()
        await self._check_end()

    def _make_network_bad(self) -> None:
        random = self.random
        self.world.network.conditions = NetworkConditions(
            delay_ms_max=random.choice((0.5, 5.0, 40.0)),
            slow_probability=random.choice((0.0, 0.02)),
            random_sizes=random.random() < 0.7,
            packet_bytes_max=random.choice((100, 1_000, 65_536)),
            loss_probability=random.choice((0.0, 0.002, 0.01)),
            window_bytes=random.choice((2_000, 262_144)),
            silence_ms_max=random.choice((1.0, 3_000.0)),
        )

    # -- clients ---------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        world, random = self.world, self.random
        process, link = world.start_client("admin")
        admin = TopicClient(link, world.history)
        for number in range(random.randint(1, 2)):
            creation = process.run(
                world.loop.create_task, admin.create(f"topic-{number}", random.randint(1, 3))
            )
            self.partitions += await self._while_crashing(creation)
        for number in range(random.randint(2, 4)):
            process, link = world.start_client("producer")
            client = ProducingClient(
                link,
                world.history,
                random.choice(self.partitions),
                is_idempotent=number % 3 != 2,
                acks=1 if number % 3 == 2 and random.random() < 0.5 else -1,
            )
            self._start_task(process.run, client.run(random.randint(5, 40)), self._working)
        for _ in range(2):
            process, link = world.start_client("reader")
            reader = ReadingClient(link, world.history, self.partitions)
            self.readers.append(reader)
            self._start_task(process.run, reader.follow(), self._endless)
        process, link = world.start_client("admin")
        admin = TopicClient(link, world.history)
        self._start_task(process.run, admin.watch(), self._endless)
        process, link = world.start_client("admin")
        self._start_task(process.run, self._keep_creating(TopicClient(link, world.history)), [])

    def _start_task(
        self,
        run_as: Callable[..., asyncio.Task[Any]],
        work: Coroutine[Any, Any, Any],
        tasks: list[asyncio.Task[Any]],
    ) -> None:
        task = run_as(self.world.loop.create_task, work)
        tasks.append(task)
        if tasks is not self._working and tasks is not self._endless:
            self._endless.append(task)

    async def _keep_creating(self, admin: TopicClient) -> None:
        """Topics come and go, some of them again under their old name."""
        existing: list[str] = []
        while True:
            await asyncio.sleep(1.0)
            name = f"more-{self.random.randrange(6)}"
            if name in existing:
                await admin.delete(name)
                existing.remove(name)
            else:
                await admin.create(name, self.random.randint(1, 2))
                existing.append(name)

    async def _check_clients(self) -> None:
        for task in (*self._working, *self._endless):
            if task.done():
                task.result()

    async def _while_crashing(
        self, task: asyncio.Task[list[TopicPartition]]
    ) -> list[TopicPartition]:
        """The result of a task that needs the broker, which may need to be started for it."""
        while not task.done():
            await asyncio.wait((task,), timeout=1.0)
            if not self.world.is_up:
                await self._start()
        return task.result()

    async def _finish_clients(self) -> None:
        _, late = await asyncio.wait(self._working, timeout=HEALED_TIME_MAX_S)
        for task in (*self._working, *self._endless):
            if task.done():
                task.result()
        if late:
            raise PropertyViolated(
                f"in a healed world everybody gets done: {len(late)} producers do not within "
                f"{HEALED_TIME_MAX_S:g} s"
            )
        for task in self._endless:
            task.cancel()
        await asyncio.wait(self._endless)

    async def _check_end(self) -> None:
        check_every_promise(self.world.history, *await self._look())

    async def _look(self) -> tuple[Contents, dict[str, Any]]:
        """What is there in the end, read by somebody who comes new."""
        world = self.world
        process, link = world.start_client("reader")
        reader = ReadingClient(link, world.history, self.partitions)
        reading = process.run(world.loop.create_task, reader.read_all())
        asking = process.run(world.loop.create_task, TopicClient(link, world.history).topics())
        async with asyncio.timeout(HEALED_TIME_MAX_S):
            return await reading, await asking

    # -- what happens ----------------------------------------------------------------------------

    def events(self) -> list[tuple[Callable[[], Coroutine[Any, Any, None]], int]]:
        return [
            (self.lose_power, 6),
            (self.cut_power_in_the_middle, 6),
            (self.kill, 3),
            (self.stop, 2),
            (self.break_connections, 3),
            (self.partition, 2),
            (self.fill_disk, 1),
            (self.fail_sync, 1),
            (self.move_clock, 1),
        ]

    async def _start(self) -> None:
        """Start the broker, however often the power goes while it starts."""
        while True:
            if self.random.random() < 0.2:
                self.world.cut_power_at(self.random.randrange(60))
            if await self.world.start_broker():
                self.world.cut_power_at(10**9)
                return
            self._power_lost()

    def _power_lost(self) -> None:
        self.world.lose_power()
        for reader in self.readers:
            reader.power_lost()

    async def lose_power(self) -> None:
        self._power_lost()
        await self._restart()

    async def cut_power_in_the_middle(self) -> None:
        self.world.cut_power_at(self.random.randrange(40))
        await self.world.wait_down(5.0)
        await self.lose_power()

    async def kill(self) -> None:
        self.world.kill_broker()
        await self._restart()

    async def stop(self) -> None:
        if self.random.random() < 0.3:
            self.world.cut_power_at(self.random.randrange(30))
        if not await self.world.stop_broker():
            self._power_lost()
        await self._restart()

    async def _restart(self) -> None:
        await asyncio.sleep(self.random.random() * 2)
        await self._start()

    async def break_connections(self) -> None:
        for transport in list(self.world.network.transports):
            if not transport.is_lost and self.random.random() < 0.5:
                self.world.network.break_connection(transport)

    async def partition(self) -> None:
        """Cut some clients off, in one direction or both, for a while."""
        network = self.world.network
        for host in sorted({each.process.host for each in network.transports} - {HOST}):
            if self.random.random() < 0.5:
                network.cut(host, HOST)
            if self.random.random() < 0.5:
                network.cut(HOST, host)
        await asyncio.sleep(self.random.random() * 5)
        network.heal()

    async def fill_disk(self) -> None:
        disk = self.world.disk
        disk.capacity_bytes = disk.used_bytes + self.random.randrange(5_000)
        await asyncio.sleep(self.random.random() * 3)
        disk.capacity_bytes = None
        # What could not be written may have cost the broker its only directory.
        await self._replace_if_failed()

    async def fail_sync(self) -> None:
        """The disk loses what it was to sync, and says so."""
        self.world.disk.faults.append(Fault({"sync", "sync_dir"}, hit_count_max=1))
        await asyncio.sleep(self.random.random() * 3)
        self.world.disk.faults.clear()
        await self.lose_power()

    async def _replace_if_failed(self) -> None:
        if self.world.has_failed:
            await self.lose_power()

    async def move_clock(self) -> None:
        self.world.clock.shift_wall(self.random.choice((-3_600_000, -500, 700, 3_600_000)))

    async def _heal(self) -> None:
        self.world.network.conditions = NetworkConditions()
        self.world.network.heal()
        self.world.disk.faults.clear()
        self.world.disk.capacity_bytes = None
        # A transaction that began before the clock was set back would be open for as long as that.
        self.world.clock.set_right()
        if not self.world.is_up:
            await self._start()


class BrokerWorldChoices:
    """What a seed chooses before there is a world to ask."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.lateness_ms = rng.choice((0.0, 2.0, 30.0))
        # Where it is long, crashes fall between what was written and its sync.
        self.thread_delay_ms_max = Random(f"threads {seed}").choice((3.0, 200.0))
        self.settings = {
            "log.roll.ms": rng.choice(("50", "1000", "604800000")),
            "log.message.timestamp.after.max.ms": "9223372036854775807",
            "log.index.interval.bytes": rng.choice(("1", "4096")),
            "log.retention.ms": "-1",
            "log.flush.offset.checkpoint.interval.ms": rng.choice(("100", "60000")),
            "replica.high.watermark.checkpoint.interval.ms": rng.choice(("100", "5000")),
            "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
            "log.initial.task.delay.ms": "10",
        }
