"""The cluster campaign on four brokers, between which an operator moves the partitions.

Topics begin with one to three replicas, and any number of them may be asked for, elsewhere or where
they were. Moves are turned around, cancelled, and overtaken by all that befalls a cluster. When the
world is healed every move must end, and what was acknowledged must be in every copy there is.
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

BROKER_COUNT = 4


class ReassignmentCampaign(ClusterCampaign):
    operator: ReassigningClient
    _operating: asyncio.Task[None]

    def make_world(self, seed: int) -> ClusterWorld:
        return ClusterChoices(seed).world(seed, broker_count=BROKER_COUNT)

    async def _start_clients(self) -> None:
        await super()._start_clients()
        process, link = self.world.start_client("operator")
        self.operator = ReassigningClient(link, self.partitions, BROKER_COUNT)
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

    async def _check_end(self) -> None:
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
