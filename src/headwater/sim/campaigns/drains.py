"""The campaign of reassignments, in which a broker is emptied in the end, as before it is retired.

That begins while moves are still under way, and trouble goes on. In the healed world it must come
to an end: who is told that a broker holds nothing stops it for good.
"""

from __future__ import annotations

import asyncio

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.cluster import HEALED_TIME_MAX_S, ClusterCampaign
from headwater.sim.campaigns.reassignments import BROKER_COUNT, ReassignmentCampaign
from headwater.sim.clients.reassigning_client import ReassigningClient
from headwater.sim.histories.history import PropertyViolated


class DrainCampaign(ReassignmentCampaign):
    #: The broker that is emptied.
    emptied: int
    _draining: asyncio.Task[None]

    async def _let_things_happen(self, count: int) -> None:
        await super()._let_things_happen(count)
        self.emptied = self.random.randrange(BROKER_COUNT)
        process, link = self.world.start_client("drainer")
        drainer = ReassigningClient(link, self.partitions, BROKER_COUNT)
        self._draining = process.run(
            self.world.loop.create_task, drainer.drain(self.emptied, self.world.observer.holders)
        )
        await ClusterCampaign._let_things_happen(self, count)

    async def _check_end(self) -> None:
        try:
            async with asyncio.timeout(HEALED_TIME_MAX_S):
                await self._draining
        except TimeoutError:
            raise PropertyViolated(
                f"an emptied broker holds nothing: {self.emptied} still has {self._left()}"
            ) from None
        await super()._check_end()
        if left := self._left():
            raise PropertyViolated(f"an emptied broker holds nothing: {self.emptied} has {left}")

    def _left(self) -> list[TopicPartition]:
        host = self.world.hosts[self.emptied]
        partitions = host.server.context.partitions
        return [
            each
            for each in self.partitions
            if self.emptied in self.world.observer.holders(each)
            or partitions.find(*each) is not None
        ]
