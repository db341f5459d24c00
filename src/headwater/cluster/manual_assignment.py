"""Checks assignments of partitions to brokers that were made by hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.new_topic import ManualAssignment


def check_new_topic(
    assignments: Sequence[ManualAssignment], brokers: Collection[int]
) -> list[tuple[int, ...]]:
    """The replicas by partition; INVALID_REPLICA_ASSIGNMENT if they cannot be a topic's."""
    by_partition: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for partition, replicas in assignments:
        if partition in by_partition:
            raise _refusal(f"Partition {partition} is assigned more than once.")
        replication_factor = check_replicas(partition, replicas, brokers, replication_factor)
        by_partition[partition] = tuple(replicas)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise _refusal("The assigned partitions are not numbered 0, 1, 2 and so on.")
    return [by_partition[partition] for partition in range(len(by_partition))]


def check_added_partitions(
    assignments: Sequence[Sequence[int]],
    partitions: range,
    brokers: Collection[int],
    replication_factor: int,
) -> list[tuple[int, ...]]:
    """The replicas of partitions that are added to a topic."""
    if len(assignments) != len(partitions):
        raise _refusal(
            f"{len(partitions)} partitions are to be added, but {len(assignments)} are assigned."
        )
    for partition, replicas in zip(partitions, assignments, strict=True):
        check_replicas(partition, replicas, brokers, replication_factor)
    return [tuple(replicas) for replicas in assignments]


def check_replicas(
    partition: int,
    replicas: Sequence[int],
    brokers: Collection[int],
    replication_factor: int | None,
) -> int:
    """Refuse what cannot be the replicas of a partition, and return how many there are."""
    if not replicas:
        raise _refusal(f"Partition {partition} is assigned to no broker.")
    if len(set(replicas)) != len(replicas):
        raise _refusal(f"Partition {partition} is assigned to the same broker more than once.")
    for broker in replicas:
        if broker not in brokers:
            raise _refusal(
                f"Partition {partition} is assigned to broker {broker}, which is not registered."
            )
    if replication_factor not in (None, len(replicas)):
        raise _refusal(
            f"Partition {partition} is assigned to {len(replicas)} brokers, but others of the "
            f"topic to {replication_factor}."
        )
    return len(replicas)


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
