"""A seeded campaign against three brokers in a simulated world.

Producers write with acks=all to topics of three replicas, two of which must be in sync; others with
acks=1, whose records may be lost. Readers read from the leaders, or from any replica. Meanwhile the
brokers are in trouble, see `cluster_trouble`. Then the world is healed: every partition gets all of
its replicas back in sync, everybody gets done, and what is there must be what was promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.cluster_trouble import (
    REPLICATION_FACTOR,
    ClusterChoices,
    ClusterTrouble,
)
from headwater.sim.checkers.every_promise import check_every_promise
from headwater.sim.checkers.unseen_after_healing import check_everything_seen
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.history import Contents, PropertyViolated
from headwater.sim.virtual_loop import SimulationDeadlock, SimulationLivelock

#: Virtual seconds that everybody has to get done once nothing fails any more.
HEALED_TIME_MAX_S = 300.0
_LOOK_INTERVAL_S = 0.05
#: More than a producer gets done before it is told to finish.
_BATCHES_MAX = 10_000


class Follower(NamedTuple):
    """A reader that was there all along."""

    name: str
    partition: TopicPartition
    client: ReadingClient


class ClusterCampaign:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.world = self.make_world(seed)
        self.random = self.world.random.child("campaign").generator
        self.trouble = self.make_trouble()
        self.partitions: list[TopicPartition] = []
        self._followers: list[Follower] = []
        self._producers: list[ProducingClient] = []
        self._working: list[asyncio.Task[Any]] = []
        self._endless: list[asyncio.Task[Any]] = []

    def make_world(self, seed: int) -> ClusterWorld:
        return ClusterChoices(seed).world(seed)

    def make_trouble(self) -> ClusterTrouble:
        return ClusterTrouble(self.world, self.random, self._set_back)

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
        self.trouble.make_network_bad()
        looking = self.world.loop.create_task(self._look())
        try:
            await self.trouble.start_all()
            await self._start_clients()
            await self._let_things_happen(event_count)
            await self.trouble.heal(self.partitions, HEALED_TIME_MAX_S)
            await self._finish_clients()
            await self._check_end()
        finally:
            looking.cancel()

    async def _look(self) -> None:
        """See to it that no promise is broken that only an observer of all brokers can check."""
        while True:
            self.world.observer.look()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    # -- clients ---------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        random = self.random
        for number in range(random.randint(1, 2)):
            self.partitions += await self._create_topic(f"topic-{number}", random.randint(1, 2))
        for number in range(random.randint(2, 3)):
            self._start_producer(
                random.choice(self.partitions),
                is_idempotent=number != 1,
                acks=1 if number == 1 else -1,
            )
        for number, partition in enumerate(self.partitions):
            process, link = self.world.start_client("reader", partition)
            # What followers show must be what their leaders have committed.
            link.reads_any_replica = (number + self.seed) % 2 == 1
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
        work = client.run(_BATCHES_MAX, pace_s_max=self.random.choice((0.2, 0.8)))
        self._start_task(process.run, work, self._working)

    def _start_task(
        self,
        run_as: Callable[..., asyncio.Task[Any]],
        work: Coroutine[Any, Any, Any],
        tasks: list[asyncio.Task[Any]],
    ) -> None:
        tasks.append(run_as(self.world.loop.create_task, work))

    def _check_tasks(self) -> None:
        for task in (*self._working, *self._endless):
            if task.done():
                task.result()

    # -- what happens ----------------------------------------------------------------------------

    async def _let_things_happen(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(self.random.choice((0.1, 1.0, 4.0)) * self.random.random())
            self._check_tasks()
            self.trouble.happen()
            self.world.observer.compare_logs()

    def _set_back(self, partition: TopicPartition) -> None:
        for follower in self._followers:
            if follower.partition == partition:
                follower.client.power_lost()

    # -- the end ---------------------------------------------------------------------------------

    async def _finish_clients(self) -> None:
        for producer in self._producers:
            producer.finish()
        _, late = await asyncio.wait(self._working, timeout=HEALED_TIME_MAX_S)
        for task in (*self._working, *self._endless):
            if task.done():
                task.result()
        if late:
            raise PropertyViolated(
                f"in a healed world everybody gets done: {len(late)} producers do not within "
                f"{HEALED_TIME_MAX_S:g} s"
            )
        # What was written last with acks=1 is not shown to readers yet.
        await self.trouble.wait_until_whole(self.partitions, HEALED_TIME_MAX_S)

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
