"""What the controller decides about leaders is one line in the log, however much it is."""

import logging

import pytest

from headwater.base.ids import TopicPartition
from headwater.cluster.partitions.elections import ElectionType
from tests.support.async_tests import run_async
from tests.support.models.broker_crowd import BrokerCrowd


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What the controller has said since somebody asked, without how long it took."""
    lines = [
        (record.levelname, record.getMessage().partition(" That took ")[0])
        for record in caplog.records
        if record.name.startswith("headwater.cluster.partitions")
    ]
    caplog.clear()
    return lines


@run_async
async def test_brokers_that_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    crowd = await BrokerCrowd.of([1, 2])
    assert told(caplog) == []
    await crowd.create("orders", *[(2, 1)] * 30)
    for number in range(30):
        await crowd.alter((2, 1), "orders", number)
    await crowd.create("alone", (2,))
    assert told(caplog) == []
    await crowd.fail(2)
    await crowd.settle()
    names = ", ".join(f"orders-{number}" for number in range(10))
    assert told(caplog) == [
        (
            "WARNING",
            f"Brokers that are gone: 2. Partitions that got a leader: 30 ({names} and 20 more). "
            "Partitions that are without a leader: 1 (alone-0).",
        )
    ]
    await crowd.register(2)
    await crowd.settle()
    assert told(caplog) == [
        ("INFO", "Brokers that have come: 2. Partitions that got a leader: 1 (alone-0).")
    ]
    await crowd.register(3)
    await crowd.settle()
    assert told(caplog) == [("INFO", "Brokers that have come: 3.")]


@run_async
async def test_leaders_that_were_not_in_sync_and_those_that_are_handed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    crowd = await BrokerCrowd.of([1, 2, 3])
    await crowd.create("orders", (2, 3))
    await crowd.alter((2,), "orders", 0)
    await crowd.fail(2)
    await crowd.settle()
    assert told(caplog)[0][0] == "WARNING"
    await crowd.seat.controller.elect_leaders(ElectionType.UNCLEAN, [TopicPartition("orders", 0)])
    assert told(caplog) == [
        (
            "WARNING",
            "Partitions that got a leader that was not in sync, and may have lost records: 1 "
            "(orders-0).",
        )
    ]
    await crowd.register(2)
    await crowd.settle()
    await crowd.alter((3, 2), "orders", 0)
    caplog.clear()
    epoch = crowd.image.brokers[3].broker_epoch
    await crowd.seat.controller.shut_down_broker(3, epoch)
    assert told(caplog) == [
        ("INFO", "Broker 3 is about to stop. Partitions that got a leader: 1 (orders-0).")
    ]
