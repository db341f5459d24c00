"""A hundred members share two hundred partitions, and again when a quarter of them has left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.contract import require_package
from tests.support.other_clients.groups.polling import partitions_of

MEMBER_COUNT = 100
LEAVING_COUNT = 25
PARTITION_COUNT = 200
TIMEOUT_S = 60.0


async def wait_shared(members: list[Any], topic: str) -> None:
    """Until every partition has one owner and no member is without."""
    expected = partitions_of(topic, PARTITION_COUNT)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        owned = [list(member.assignment()) for member in members]
        found = sorted((each.topic, each.partition) for some in owned for each in some)
        if found == expected and all(owned):
            return
        assert time.monotonic() < deadline, (len(found), len(set(found)))
        await asyncio.sleep(0.05)


def test_a_hundred_members(
    broker: BrokerUnderTest, make_topic: Callable[..., str], group: str
) -> None:
    topic = make_topic(PARTITION_COUNT)
    aiokafka = require_package("aiokafka", "aiokafka")

    async def run() -> None:
        members = [
            aiokafka.AIOKafkaConsumer(
                bootstrap_servers=broker.bootstrap,
                group_id=group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                heartbeat_interval_ms=500,
                enable_auto_commit=False,
            )
            for _ in range(MEMBER_COUNT)
        ]
        try:
            await asyncio.gather(*(member.start() for member in members))
            for member in members:
                member.subscribe([topic])
            await wait_shared(members, topic)
            await asyncio.gather(*(member.stop() for member in members[:LEAVING_COUNT]))
            await wait_shared(members[LEAVING_COUNT:], topic)
        finally:
            await asyncio.gather(*(member.stop() for member in members))

    asyncio.run(run())
