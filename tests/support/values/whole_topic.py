"""A topic to write to, and all that is in it, for tests that write with one client or another."""

from __future__ import annotations

import asyncio

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, NewTopic, OffsetTime, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer

_TIMEOUT_S = 30.0


def create_topic(bootstrap: str, name: str, partition_count: int = 2) -> str:
    """Create a topic and wait until its leaders know that they are."""

    async def create() -> None:
        async with ClusterConnection(bootstrap) as connection:
            admin = AdminOperations(connection)
            require_all(await admin.create_topics([NewTopic(name, partition_count)]))
            partitions = [TopicPartition(name, number) for number in range(partition_count)]
            async with asyncio.timeout(_TIMEOUT_S):
                while any(
                    isinstance(outcome, KafkaError)
                    for outcome in (
                        await admin.list_offsets(dict.fromkeys(partitions, OffsetTime.LATEST))
                    ).values()
                ):
                    await asyncio.sleep(0.01)

    asyncio.run(create())
    return name


def read_topic(
    bootstrap: str, name: str, partition_count: int = 2, *, is_committed: bool = True
) -> dict[int, list[bytes]]:
    """The values of all records, by partition; of committed transactions only, unless told."""
    level = "read_committed" if is_committed else "read_uncommitted"
    partitions = [TopicPartition(name, number) for number in range(partition_count)]
    found: dict[int, list[bytes]] = {number: [] for number in range(partition_count)}

    async def read() -> None:
        async with (
            asyncio.timeout(_TIMEOUT_S),
            AsyncConsumer({"isolation.level": level}, bootstrap_servers=bootstrap) as consumer,
        ):
            ends = await consumer.end_offsets(partitions)
            consumer.assign(partitions)
            consumer.seek_to_beginning(partitions)
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                for record in await consumer.poll(1.0):
                    found[record.partition].append(record.value or b"")

    asyncio.run(read())
    return found
