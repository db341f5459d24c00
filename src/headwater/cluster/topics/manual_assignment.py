"""Checks assignments of partitions to brokers that were made by hand.

A broker that is down may be assigned a partition, if it is known: if it holds others already. It
will join the ISR when it is back. One of a partition's brokers must be there to begin with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.topics.new_topic import ManualAssignment


def check_new_topic(
    assignments: Sequence[ManualAssignment], image: ClusterImage, active: Collection[int]
) -> list[tuple[int, ...]]:
    """The replicas by partition; INVALID_REPLICA_ASSIGNMENT if they cannot be a topic's.

    `active` are the live brokers without those that are about to stop.
    """
    by_partition: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for partition, replicas in assignments:
        if partition in by_partition:
            raise _refusal(f"Partition {partition} is assigned more than once.")
        replication_factor = _check_replicas(partition, replicas, replication_factor)
        by_partition[partition] = tuple(replicas)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise _refusal("The assigned partitions are not numbered 0, 1, 2 and so on.")
    _check_brokers(by_partition.items(), image, active)
    return [by_partition[partition] for partition in range(len(by_partition))]


def check_added_partitions(
    assignments: Sequence[Sequence[int]],
    partitions: range,
    image: ClusterImage,
    active: Collection[int],
    replication_factor: int,
) -> list[tuple[int, ...]]:
    """The replicas of partitions that are added to a topic."""
    if len(assignments) != len(partitions):
        raise _refusal(
            f"{len(partitions)} partitions are to be added, but {len(assignments)} are assigned."
        )
    for partition, replicas in zip(partitions, assignments, strict=True):
        _check_replicas(partition, replicas, replication_factor)
    _check_brokers(list(zip(partitions, assignments, strict=True)), image, active)
    return [tuple(replicas) for replicas in assignments]


def _check_replicas(partition: int, replicas: Sequence[int], replication_factor: int | None) -> int:
    """Refuse what cannot be the replicas of a partition, and return how many there are."""
    if not replicas:
        raise _refusal(f"Partition {partition} is assigned to no broker.")
    if len(set(replicas)) != len(replicas):
        raise _refusal(f"Partition {partition} is assigned to the same broker more than once.")
    if replication_factor not in (None, len(replicas)):
        raise _refusal(
            f"Partition {partition} is assigned to {len(replicas)} brokers, but others of the "
            f"topic to {replication_factor}."
        )
    return len(replicas)


def _check_brokers(
    assignments: Collection[tuple[int, Sequence[int]]],
    image: ClusterImage,
    active: Collection[int],
) -> None:
    absent = {broker for _, replicas in assignments for broker in replicas} - image.brokers.keys()
    unknown = absent - _holders(image) if absent else absent
    for partition, replicas in assignments:
        for broker in replicas:
            if broker in unknown:
                raise _refusal(
                    f"Partition {partition} is assigned to broker {broker}, which is not "
                    "registered."
                )
        if not any(broker in active for broker in replicas):
            raise _refusal(f"None of the brokers that partition {partition} is assigned to is up.")


def _holders(image: ClusterImage) -> set[int]:
    """The brokers that hold partitions, whether they are up or not."""
    return {
        broker
        for topic in image.topics.values()
        for partition in topic.partitions
        for broker in partition.replicas
    }


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
