"""Looks at a whole cluster, again and again: brokers, controller, partitions, moves, groups.

All of it is asked as any client asks, so it works against every Kafka-compatible cluster. What a
cluster does not tell, or not in time, is None. Traffic is what logs grow by between two looks.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.cli.cluster.broker_status import BrokerStatus, HeldReplicas, Reading
from headwater.cli.cluster.group_lag import GroupLags, find_worst_groups
from headwater.cli.cluster.partition_health import (
    Moves,
    PartitionHealth,
    find_under_min_isr,
    without_added,
)
from headwater.cli.cluster.releases import Releases
from headwater.cli.cluster.told import log_directories, told
from headwater.client.admin import (
    BrokerOperations,
    ReassignmentOperations,
    TopicOperations,
)
from headwater.client.connection.cluster_connection import ClusterConnection

_NOTHING = HeldReplicas([], [], [], [])


class ClusterStatus(NamedTuple):
    """A cluster at one moment."""

    cluster_id: str | None
    controller_id: int
    brokers: list[BrokerStatus]
    topic_count: int
    health: PartitionHealth
    under_min_isr: list[TopicPartition] | None
    moves: Moves | None
    groups: GroupLags | None

    @property
    def live(self) -> list[int]:
        return [each.broker_id for each in self.brokers if each.node is not None]

    @property
    def missing(self) -> list[int]:
        """Brokers that have replicas and are not there."""
        return [each.broker_id for each in self.brokers if each.node is None]

    @property
    def has_controller(self) -> bool:
        return self.controller_id in self.live

    @property
    def is_healthy(self) -> bool:
        """Whether everything is in use and as safe as it was meant to be."""
        return (
            self.health.is_whole
            and not self.missing
            and self.has_controller
            and not any(each.failed_directories for each in self.brokers)
        )


class Surveyor:
    """Looks at a cluster; keeps what it takes to tell what has changed since."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._releases = Releases()
        self._readings: dict[int, Reading] = {}

    async def look(self) -> ClusterStatus:
        connection = self._connection
        # One that ends or begins meanwhile shall not look like a partition that lacks a replica.
        earlier = await self._moves()
        topics = await TopicOperations(connection).list_topics()
        cluster = await BrokerOperations(connection).describe_cluster()
        nodes = {node.broker_id: node for node in cluster.brokers}
        held = HeldReplicas.by_broker(topics)
        broker_ids = sorted(nodes.keys() | held.keys())
        # Without a controller nobody tells.
        moves = None if earlier is None else await self._moves()
        settled = without_added(topics, {**(earlier or {}), **(moves or {})})
        under_min_isr, groups, releases, directories = await asyncio.gather(
            told(find_under_min_isr(connection, settled)),
            told(find_worst_groups(connection)),
            self._releases.of(connection, nodes),
            asyncio.gather(*(log_directories(connection, each) for each in nodes)),
        )
        found_on = dict(zip(nodes, directories, strict=True))
        brokers = []
        for broker_id in broker_ids:
            own, found = held.get(broker_id, _NOTHING), found_on.get(broker_id)
            reading = None if found is None else Reading.of(found)
            before = self._readings.pop(broker_id, None)
            if reading is not None:
                self._readings[broker_id] = reading
            brokers.append(
                BrokerStatus(
                    broker_id,
                    nodes.get(broker_id),
                    broker_id == cluster.controller_id,
                    releases.get(broker_id),
                    own,
                    found,
                    None if reading is None else reading.bytes_in(before, own.leaders),
                )
            )
        return ClusterStatus(
            cluster.cluster_id,
            cluster.controller_id,
            brokers,
            len(topics),
            PartitionHealth.of(settled),
            under_min_isr,
            moves,
            groups,
        )

    async def _moves(self) -> Moves | None:
        operations = ReassignmentOperations(self._connection)
        return await told(operations.list_partition_reassignments())
