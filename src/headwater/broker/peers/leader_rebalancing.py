"""Gives partitions back to their preferred leaders from time to time (auto.leader.rebalance).

Every broker has one and looks every `leader.imbalance.check.interval.seconds`, but only the
controller finds something to do. Failures are left for the next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.partitions.elections import ElectionType
from headwater.cluster.partitions.leader_imbalance import partitions_to_hand_back
from headwater.cluster.store.errors import StoreError

_logger = logging.getLogger(__name__)

#: Has the preferred replicas of these partitions elected.
HandBack = Callable[[Sequence[TopicPartition]], Awaitable[object]]


class LeaderRebalancing:
    """Looks from `start` to `close`; its owner is the broker.

    `controller_image` gives what the controller knows, or None where another broker is it.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        controller_image: Callable[[], ClusterImage | None],
        hand_back: HandBack,
        tasks: BackgroundTasks,
    ) -> None:
        self._settings = settings
        self._controller_image = controller_image
        self._hand_back = hand_back
        self._tasks = tasks
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._settings.boolean("auto.leader.rebalance.enable"):
            self._task = self._tasks.start("leader rebalancing", self._look_again_and_again())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._settings.integer("leader.imbalance.check.interval.seconds"))
            try:
                await self._look()
            except (KafkaError, StoreError) as error:
                _logger.warning("Leaders could not be rebalanced: %s", error)

    async def _look(self) -> None:
        image = self._controller_image()
        if image is None:
            return
        percentage = self._settings.integer("leader.imbalance.per.broker.percentage")
        partitions = partitions_to_hand_back(image, percentage)
        if partitions:
            _logger.info("%d partitions go back to their preferred leaders.", len(partitions))
            await self._hand_back(partitions)


def make_rebalancing(context: BrokerContext) -> LeaderRebalancing:
    """For a broker that may be the controller at one time and not at another."""
    member = context.member
    return LeaderRebalancing(
        context.settings,
        lambda: member.controller.image if member.is_controller else None,
        lambda partitions: member.controller.elect_leaders(ElectionType.PREFERRED, partitions),
        context.background,
    )
