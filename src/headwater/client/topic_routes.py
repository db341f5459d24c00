"""Where a producer's records can go: the partitions of each topic it writes to, and their choice.

A topic is looked up when it is first written to, which may create it. After that the routes are
only looked at again when an attempt has failed, since everything else would cost each record.
"""

from collections.abc import Collection
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.cluster_metadata import TopicInfo
from headwater.client.errors import UnknownTopicError
from headwater.client.kafka_errors import LeaderNotAvailableError
from headwater.client.partitioner import StickyPartitions, partition_for_key


class TopicRoute(NamedTuple):
    """A topic's partitions in order, and the numbers of those that can be written to now."""

    topic: str
    partitions: list[TopicPartition]
    with_leader: list[int]


class TopicRoutes:
    """Routes by topic."""

    def __init__(self, connection: ClusterConnection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._sticky = StickyPartitions(connection.generator)
        self._routes: dict[str, TopicRoute] = {}

    def get(self, topic: str) -> TopicRoute | None:
        return self._routes.get(topic)

    async def find(self, name: str) -> TopicRoute:
        """Look a topic up, waiting for one that is created by this or gets its leaders."""

        async def attempt() -> TopicInfo:
            await self._connection.refresh([name], allow_auto_creation=True)
            topic = self._connection.metadata.existing_topic(name)
            if not any(partition.has_leader for partition in topic.partitions):
                raise LeaderNotAvailableError(f"Topic {name!r} has no partition leader.")
            return topic

        topic = await self._connection.retrying(
            attempt,
            f"Looking up topic {name!r}",
            timeout_s=self._timeout_s,
            unknown_topic_is_final=False,
        )
        return self._remember(topic)

    def choose(self, route: TopicRoute, key: bytes | None, partition: int | None) -> TopicPartition:
        """The partition for a record: the one asked for, that of its key, or the current one."""
        if partition is None:
            if key is None:
                partition = self._sticky.current(route.topic, route.with_leader)
            else:
                partition = partition_for_key(key, len(route.partitions))
        elif not 0 <= partition < len(route.partitions):
            raise UnknownTopicError.partition(route.topic, partition, len(route.partitions))
        return route.partitions[partition]

    def batch_ended(self, topic_partition: TopicPartition) -> None:
        """A batch is complete: records without a key go to another partition from now on."""
        topic, partition = topic_partition
        route = self._routes.get(topic)
        if route is not None:
            self._sticky.move_on(topic, partition, route.with_leader)

    async def refresh(self, topics: Collection[str]) -> None:
        """Learn where topics are now, if the cluster can tell."""
        try:
            await self._connection.refresh(topics)
        except KafkaError:
            # The attempts that need it will fail, and say so if it lasts.
            return
        for name in topics:
            topic = self._connection.metadata.topic(name)
            if topic is not None and any(partition.has_leader for partition in topic.partitions):
                self._remember(topic)

    def _remember(self, topic: TopicInfo) -> TopicRoute:
        route = TopicRoute(
            topic.name,
            [TopicPartition(topic.name, number) for number in range(len(topic.partitions))],
            [partition.partition for partition in topic.partitions if partition.has_leader],
        )
        self._routes[topic.name] = route
        return route
