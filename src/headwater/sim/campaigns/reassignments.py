"""The cluster campaign on four brokers, between which an operator moves the partitions.

Topics begin with one to three replicas, and any number of them may be asked for, elsewhere or where
they were. Moves are turned around, cancelled, throttled, and overtaken by all that befalls a
cluster. When the world is healed every move must end, and what was acknowledged must be in every
copy there is. At no time is anybody held back by a throttle who is in sync, and no throttle
outlives its move.
"""

from __future__ import annotations

import asyncio

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.cluster import HEALED_TIME_MAX_S, ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import ClusterChoices
from headwater.sim.clients.reassigning_client import ReassigningClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.process import SimulatedProcess

_LOOK_INTERVAL_S = 0.05
BROKER_COUNT = 4


class ReassignmentCampaign(ClusterCampaign):
    operator: ReassigningClient
    _operating: asyncio.Task[None]
    _operator_process: SimulatedProcess
    #: Who was in sync and held back by a throttle, if anybody was.
    _held_back = ""

    def make_world(self, seed: int) -> ClusterWorld:
        return ClusterChoices(seed).world(seed, broker_count=BROKER_COUNT)

    async def _start_clients(self) -> None:
        await super()._start_clients()
        process, link = self.world.start_client("operator")
        self.operator = ReassigningClient(link, self.partitions, BROKER_COUNT)
        self._operator_process = process
        self._operating = process.run(self.world.loop.create_task, self.operator.run())

    async def _create_topic(self, name: str, partition_count: int) -> list[TopicPartition]:
        process, link = self.world.start_client("admin")
        factor = self.random.choice((1, 2, 3))
        admin = TopicClient(link, self.world.history, replication_factor=factor)
        async with asyncio.timeout(HEALED_TIME_MAX_S):
            return await process.run(
                self.world.loop.create_task, admin.create(name, partition_count)
            )

    async def _let_things_happen(self, count: int) -> None:
        await super()._let_things_happen(count)
        self.operator.finish()
        async with asyncio.timeout(HEALED_TIME_MAX_S):
            await self._operating
        self._start_task(self._operator_process.run, self.operator.loosen(), self._endless)

    async def _look(self) -> None:
        while True:
            self.world.observer.look()
            self._look_at_throttles()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    def _check_tasks(self) -> None:
        super()._check_tasks()
        if self._held_back:
            raise PropertyViolated(f"nobody in sync is throttled: {self._held_back} was")

    def _look_at_throttles(self) -> None:
        """Who is in sync gets what there is."""
        for host in self.world.hosts:
            if host.serves:
                partitions = host.server.context.partitions
                for partition in partitions if partitions.throttles.leading else ():
                    for replica_id in partition.isr if partition.is_leader else ():
                        if partitions.throttles.leader_wait_ms(partition, replica_id):
                            self._held_back = f"{replica_id} of {partition.topic_partition}"

    async def _check_end(self) -> None:
        self._check_tasks()
        await super()._check_end()
        end_s = self.world.loop.time() + HEALED_TIME_MAX_S
        # A request of the operator may have been under way until now.
        while self._differences():
            if self.world.loop.time() > end_s:
                raise PropertyViolated(
                    "in a healed world replicas are where they shall be, all alike: "
                    + ", ".join(self._differences())
                )
            await asyncio.sleep(0.2)
        if throttled := self.world.observer.throttled():
            raise PropertyViolated(f"a throttle goes with its move: {throttled} still have one")

    def _differences(self) -> list[str]:
        """What is not as it shall be, of partitions that nobody writes to any more."""
        observer = self.world.observer
        found = []
        for name in self.partitions:
            holders = observer.holders(name)
            here = {
                number: partition
                for number, host in enumerate(self.world.hosts)
                if (partition := host.server.context.partitions.find(*name)) is not None
            }
            ends = {partition.log_end_offset for partition in here.values()}
            if not observer.is_whole(name) or set(here) != set(holders) or len(ends) != 1:
                found.append(f"{name} of {holders} is at {sorted(here)} with ends {sorted(ends)}")
        return found
