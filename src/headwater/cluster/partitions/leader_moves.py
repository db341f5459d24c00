"""Which leaders move because somebody asked for it: controlled shutdowns and elections on demand.

Nothing here reads or writes: the functions answer with the new states of partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import NO_LEADER, ClusterImage, PartitionImage
from headwater.cluster.partitions.elections import (
    ControlledShutdown,
    ElectionStrategy,
    ElectionType,
    OfflinePartition,
    PreferredReplica,
)

Outcome = dict[TopicPartition, KafkaError | None]


class ShutdownPlan(NamedTuple):
    """What changes when a broker is about to stop, and what it cannot hand over."""

    states: dict[TopicPartition, PartitionImage]
    remaining_count: int


def plan_shutdown(
    image: ClusterImage, broker_id: int, shutting_down: Collection[int]
) -> ShutdownPlan:
    """Hand the broker's partitions over; ISRs it leaves when the new leaders find that it is gone.

    Remaining are the partitions that it leads because no other member of the ISR is alive. Those
    that have one replica do not count: nobody could ever take them over.
    """
    strategy = ControlledShutdown(shutting_down)
    states: dict[TopicPartition, PartitionImage] = {}
    remaining_count = 0
    for name, partition in all_partitions(image):
        if len(partition.replicas) == 1 or partition.leader != broker_id:
            continue
        elected = strategy.elect(partition, image.brokers)
        if elected is None:
            remaining_count += 1
        else:
            states[name] = elected
    return ShutdownPlan(states, remaining_count)


class ElectionsPlan(NamedTuple):
    """What changes when elections are held, and by partition why one was not."""

    states: dict[TopicPartition, PartitionImage]
    outcome: Outcome


def plan_elections(
    image: ClusterImage,
    election_type: ElectionType,
    partitions: Iterable[TopicPartition] | None,
    shutting_down: Collection[int],
) -> ElectionsPlan:
    """Hold elections for some partitions, or with None for all that need one."""
    live = image.brokers.keys() - shutting_down
    states: dict[TopicPartition, PartitionImage] = {}
    outcome: Outcome = {}
    named = all_partitions(image) if partitions is None else _find(image, partitions)
    for name, partition in named:
        if partition is None:
            reason = f"There is no partition {name}."
            outcome[name] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
            continue
        try:
            states[name] = _elected(partition, election_type, live)
            outcome[name] = None
        except KafkaError as error:
            if partitions is not None or error.code != ErrorCode.ELECTION_NOT_NEEDED:
                outcome[name] = error
    return ElectionsPlan(states, outcome)


def _elected(
    partition: PartitionImage, election_type: ElectionType, live: Collection[int]
) -> PartitionImage:
    strategy: ElectionStrategy
    if election_type is ElectionType.PREFERRED:
        is_needed = partition.leader != partition.replicas[0]
        strategy, failure = PreferredReplica(), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        is_needed = partition.leader == NO_LEADER
        strategy = OfflinePartition(unclean_allowed=True)
        failure = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if not is_needed:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    elected = strategy.elect(partition, live)
    if elected is None:
        raise KafkaError(failure)
    return elected


def all_partitions(image: ClusterImage) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """Every partition of the cluster with its name."""
    for topic in image.topics.values():
        for number, partition in enumerate(topic.partitions):
            yield TopicPartition(topic.name, number), partition


def _find(
    image: ClusterImage, names: Iterable[TopicPartition]
) -> Iterator[tuple[TopicPartition, PartitionImage | None]]:
    for name in names:
        topic = image.topics.get(name.topic)
        if topic is None or not 0 <= name.partition < len(topic.partitions):
            yield name, None
        else:
            yield name, topic.partitions[name.partition]
