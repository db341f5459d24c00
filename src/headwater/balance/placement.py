"""Where the replicas are while a plan is made: moves are tried here, and taken back.

The state of a planner, and its only owner. Sums for each broker and resource are kept up to date,
so that a goal can be asked about a broker at any time without counting anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headwater.balance.cluster_load import BrokerLoad, ClusterLoad, PartitionLoad, Resource
from headwater.base.checks import check
from headwater.base.ids import TopicPartition


class Action(NamedTuple):
    """A partition gets another list of replicas; the first of them is to lead."""

    topic_partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def brokers(self) -> tuple[int, ...]:
        """Those whose load changes, each once."""
        return tuple(dict.fromkeys((*self.before, *self.after)))

    def reversed(self) -> Action:
        return Action(self.topic_partition, self.after, self.before)


def moved(partition: TopicPartition, replicas: tuple[int, ...], source: int, target: int) -> Action:
    """The replica at `source` lies at `target` instead, in the same place of the list."""
    after = tuple(target if each == source else each for each in replicas)
    return Action(partition, replicas, after)


def led_by(partition: TopicPartition, replicas: tuple[int, ...], leader: int) -> Action:
    """The replica at `leader` changes places with the first one: nothing is copied."""
    rest = list(replicas)
    index = rest.index(leader)
    rest[0], rest[index] = rest[index], rest[0]
    return Action(partition, replicas, tuple(rest))


class Placement:
    def __init__(self, load: ClusterLoad) -> None:
        self.brokers: dict[int, BrokerLoad] = {each.broker_id: each for each in load.brokers}
        self.partitions: dict[TopicPartition, PartitionLoad] = {
            each.topic_partition: each for each in load.partitions
        }
        self.replicas: dict[TopicPartition, tuple[int, ...]] = {
            each.topic_partition: each.replicas for each in load.partitions
        }
        #: By partition, what its leader takes of each resource, and what a follower does.
        self._costs = {
            each.topic_partition: tuple(
                {resource: each.cost(resource, is_leader=is_leader) for resource in Resource}
                for is_leader in (True, False)
            )
            for each in load.partitions
        }
        self._sums = {broker_id: dict.fromkeys(Resource, 0) for broker_id in self.brokers}
        #: A dict, because the order of a set is not the same in every process.
        self._on_broker: dict[int, dict[TopicPartition, None]] = {
            broker_id: {} for broker_id in self.brokers
        }
        for partition, replicas in self.replicas.items():
            for index, broker_id in enumerate(replicas):
                self._add(partition, index, broker_id, 1)
                self._on_broker[broker_id][partition] = None

    def used(self, resource: Resource, broker_id: int) -> int:
        return self._sums[broker_id][resource]

    def on_broker(self, broker_id: int) -> Iterable[TopicPartition]:
        """The partitions that have a replica there; not while something is applied."""
        return self._on_broker[broker_id]

    def cost(self, partition: TopicPartition, resource: Resource, broker_id: int) -> int:
        """What the replica at a broker takes."""
        is_follower = self.replicas[partition][0] != broker_id
        return self._costs[partition][is_follower][resource]

    def apply(self, action: Action) -> None:
        partition, before, after = action
        check(self.replicas[partition] == before, "an action of another state")
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                self._add(partition, index, old, -1)
                self._add(partition, index, new, 1)
                if old not in after:
                    del self._on_broker[old][partition]
                if new not in before:
                    self._on_broker[new][partition] = None
        self.replicas[partition] = after

    def _add(self, partition: TopicPartition, index: int, broker_id: int, sign: int) -> None:
        sums = self._sums[broker_id]
        for resource, cost in self._costs[partition][index > 0].items():
            sums[resource] += sign * cost
