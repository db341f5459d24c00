"""What may be asked for by AlterPartitionReassignments, with Kafka's errors for the rest.

A broker that is down may be in a target if it is known: if it holds partitions already. The move
then waits until it is back. No broker gets a new replica whose directories are all cordoned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import ClusterImage, PartitionImage
from headwater.cluster.partitions.leader_moves import all_partitions
from headwater.cluster.reassignment.steps import turned_to
from headwater.cluster.topics.cordoning import is_cordoned
from headwater.cluster.topics.deletion import find_topic


class Reassignment(NamedTuple):
    """A partition, and the brokers that shall hold it; None cancels the move that is under way."""

    partition: TopicPartition
    target: tuple[int, ...] | None
    #: What a broker may send or receive for it, in bytes a second; 0 as much as it can, None as
    #: before.
    throttle: int | None = None


class ReassignmentRules:
    """Judges the requests of one turn, all of them by the same image."""

    def __init__(self, image: ClusterImage, *, factor_may_change: bool) -> None:
        self._image = image
        self._factor_may_change = factor_may_change
        self._holders: frozenset[int] | None = None

    def plan(self, wanted: Reassignment) -> PartitionImage | None:
        """The first state of the move; None if nothing is to be done. Raises KafkaError."""
        partition = self._find(wanted.partition)
        target = wanted.target
        if target is None:
            if not partition.is_moving:
                raise KafkaError(
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                    f"{wanted.partition} is not being reassigned.",
                )
            return turned_to(partition, partition.origin, wanted.throttle)
        self._check_target(target, partition)
        return turned_to(partition, target, wanted.throttle)

    def _find(self, name: TopicPartition) -> PartitionImage:
        topic = find_topic(name.topic, self._image)
        if not 0 <= name.partition < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}.")
        return topic.partitions[name.partition]

    def _check_target(self, target: tuple[int, ...], partition: PartitionImage) -> None:
        if not target:
            raise _refusal("The list of replicas is empty.")
        if len(set(target)) != len(target):
            raise _refusal("The list of replicas names a broker more than once.")
        for broker_id in target:
            self._check_broker(broker_id, partition.replicas)
        factor = len(partition.target)
        if len(target) != factor and not self._factor_may_change:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor would change from {factor} to {len(target)}.",
            )

    def _check_broker(self, broker_id: int, replicas: Collection[int]) -> None:
        if broker_id in replicas:
            return
        broker = self._image.brokers.get(broker_id)
        if broker is not None:
            if is_cordoned(broker, self._image):
                raise _refusal(f"Broker {broker_id} is cordoned: it gets no new replicas.")
        elif broker_id not in self._known_brokers():
            raise _refusal(f"Broker {broker_id} is not registered.")

    def _known_brokers(self) -> frozenset[int]:
        """Those that hold partitions, whether they are up or not."""
        if self._holders is None:
            self._holders = frozenset(
                broker_id
                for _, partition in all_partitions(self._image)
                for broker_id in partition.replicas
            )
        return self._holders


def throttled_moves(image: ClusterImage, throttle: int) -> list[Reassignment]:
    """All moves as they are, but with this throttle."""
    return [
        Reassignment(name, partition.target, throttle)
        for name, partition in moving_partitions(image)
    ]


def moving_partitions(image: ClusterImage) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """Those that are being reassigned."""
    return (each for each in all_partitions(image) if each[1].is_moving)


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
