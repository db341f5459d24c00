"""The settings of auto.leader.rebalance decide whether, when and what goes back."""

import asyncio
from collections.abc import Sequence

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.peers.leader_rebalancing import LeaderRebalancing
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.image import ClusterImage
from headwater.sim.virtual_loop import VirtualLoop
from tests.support.values.cluster_images import image_of, partition_of

#: Half of what prefers broker 1 is led by broker 2.
HALF = image_of([partition_of((1, 2), 1, (1, 2)), partition_of((1, 2), 2, (1, 2))])


def handed_back(
    texts: dict[str, str], seconds: float, image: ClusterImage | None = HALF, fails: bool = False
) -> list[tuple[float, list[int]]]:
    """When something was handed back, and which partitions."""
    loop = VirtualLoop()
    seen: list[tuple[float, list[int]]] = []

    async def hand_back(partitions: Sequence[TopicPartition]) -> None:
        seen.append((round(loop.time(), 3), [each.partition for each in partitions]))
        if fails:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "Another one is.")

    async def run() -> None:
        began_s = loop.time()
        rebalancing = LeaderRebalancing(
            BrokerSettings.from_texts(texts), lambda: image, hand_back, BackgroundTasks()
        )
        rebalancing.start()
        await asyncio.sleep(seconds)
        await rebalancing.close()
        await asyncio.sleep(seconds)
        seen[:] = [(at_s - began_s, partitions) for at_s, partitions in seen]

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return seen


def test_every_five_minutes_by_default_and_not_after_the_end() -> None:
    assert handed_back({}, 700) == [(300, [1]), (600, [1])]


def test_how_often_and_from_which_share_on_can_be_set() -> None:
    texts = {"leader.imbalance.check.interval.seconds": "10"}
    assert handed_back(texts, 11) == [(10, [1])]
    assert handed_back(texts | {"leader.imbalance.per.broker.percentage": "50"}, 11) == []


def test_it_can_be_turned_off() -> None:
    assert handed_back({"auto.leader.rebalance.enable": "false"}, 700) == []


def test_only_the_controller_has_something_to_do() -> None:
    assert handed_back({}, 700, image=None) == []


def test_a_failure_is_left_for_the_next_time(caplog: pytest.LogCaptureFixture) -> None:
    assert len(handed_back({}, 700, fails=True)) == 2
    assert caplog.messages[-1] == "Leaders could not be rebalanced: Another one is."
