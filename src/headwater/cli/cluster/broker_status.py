"""How one broker of a cluster is: what it leads and holds, its disks, what is written to it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin import LogDirectory
from headwater.client.connection.cluster_metadata import BrokerNode, TopicInfo


class HeldReplicas(NamedTuple):
    """The replicas that a broker is to have, by what it is to them."""

    leaders: list[TopicPartition]
    #: Those that it is meant to lead, being the first of their replicas.
    preferred: list[TopicPartition]
    replicas: list[TopicPartition]
    #: Those of them that are not in sync.
    out_of_sync: list[TopicPartition]

    @classmethod
    def by_broker(cls, topics: Collection[TopicInfo]) -> dict[int, HeldReplicas]:
        held: dict[int, HeldReplicas] = {}
        for topic in topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition)
                for position, broker_id in enumerate(partition.replicas):
                    own = held.get(broker_id)
                    if own is None:
                        own = held[broker_id] = cls([], [], [], [])
                    own.replicas.append(key)
                    if position == 0:
                        own.preferred.append(key)
                    if broker_id == partition.leader_id:
                        own.leaders.append(key)
                    if broker_id not in partition.isr:
                        own.out_of_sync.append(key)
        return held


class Reading(NamedTuple):
    """The sizes of all replicas on a broker at one moment, to compare with a later one."""

    read_s: float
    sizes: Mapping[TopicPartition, int]

    @classmethod
    def of(cls, directories: Collection[LogDirectory]) -> Reading:
        return cls(
            time.monotonic(),
            {
                key: replica.size_bytes
                for directory in directories
                for key, replica in directory.replicas.items()
                if not replica.is_future
            },
        )

    def bytes_in(self, before: Reading | None, led: Collection[TopicPartition]) -> float | None:
        """What producers wrote in a second: by how much the logs have grown that it leads.

        A log that became smaller was deleted from, and counts as one that nobody writes to.
        """
        if before is None or self.read_s <= before.read_s:
            return None
        grown = sum(
            max(0, self.sizes[key] - before.sizes[key])
            for key in led
            if key in self.sizes and key in before.sizes
        )
        return grown / (self.read_s - before.read_s)


class BrokerStatus(NamedTuple):
    """A broker; what it does not tell is None."""

    broker_id: int
    #: None for a broker that is not there, but has replicas.
    node: BrokerNode | None
    is_controller: bool
    version: str | None
    held: HeldReplicas
    directories: list[LogDirectory] | None
    bytes_in: float | None

    @property
    def used_bytes(self) -> int | None:
        if self.directories is None:
            return None
        return sum(replica.size_bytes for d in self.directories for replica in d.replicas.values())

    @property
    def free_bytes(self) -> int | None:
        """On the disks of all of its directories."""
        if self.directories is None or any(each.usable_bytes < 0 for each in self.directories):
            return None
        return sum(each.usable_bytes for each in self.directories)

    @property
    def failed_directories(self) -> list[str]:
        return [each.path for each in self.directories or () if each.error_code]

    @property
    def is_cordoned(self) -> bool:
        return bool(self.directories) and all(each.is_cordoned for each in self.directories or ())
