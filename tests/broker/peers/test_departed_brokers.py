"""Metadata names a broker for a little longer when it has gone."""

import asyncio

from headwater.base.clocks import ManualClock
from headwater.broker.peers.departed_brokers import NAMED_MS, DepartedBrokers
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import BrokerInfo, ClusterImage


def brokers(*broker_ids: int) -> ImageChange:
    return ImageChange(ClusterImage(brokers={each: BrokerInfo(each, ()) for each in broker_ids}))


def told(departed: DepartedBrokers, *changes: ImageChange) -> None:
    async def tell() -> None:
        for change in changes:
            await departed(change)

    asyncio.run(tell())


def test_a_broker_is_named_until_its_time_is_over() -> None:
    clock = ManualClock()
    departed = DepartedBrokers(clock)
    told(departed, brokers(1, 2, 3), brokers(1, 2))
    assert list(departed.named()) == [3]
    clock.advance(NAMED_MS - 1)
    told(departed, brokers(1))
    assert sorted(departed.named()) == [2, 3]
    clock.advance(1)
    assert list(departed.named()) == [2]
    clock.advance(NAMED_MS)
    assert departed.named() == {}


def test_one_that_is_back_is_not_among_the_departed() -> None:
    departed = DepartedBrokers(ManualClock())
    told(departed, brokers(1, 2), brokers(1), brokers(1, 2))
    assert departed.named() == {}


def test_nobody_has_departed_with_the_first_image() -> None:
    departed = DepartedBrokers(ManualClock())
    told(departed, brokers(1, 2))
    assert departed.named() == {}
