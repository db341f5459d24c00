"""Partitions that are not led by their preferred replica, the first of their replicas.

Leaders are spread evenly when a topic is made, because first replicas are. Failures and restarts
move leaders away, and back they go only if somebody sees to it. Judged is each broker by itself:
of the partitions that prefer it, the share that others lead.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import ClusterImage, PartitionImage


def imbalance_count(image: ClusterImage) -> int:
    """How many partitions of the cluster are led by another than their preferred replica."""
    return sum(not _is_preferred(partition) for _, partition in _partitions(image))


def partitions_to_hand_back(image: ClusterImage, percentage: int) -> list[TopicPartition]:
    """What should go back to preferred leaders that miss more than that share of their partitions.

    A leader that is not there, or not in sync, cannot have it back yet.
    """
    totals: dict[int, int] = {}
    missing: dict[int, list[TopicPartition]] = {}
    for topic_partition, partition in _partitions(image):
        preferred = partition.replicas[0]
        totals[preferred] = totals.get(preferred, 0) + 1
        if not _is_preferred(partition):
            missing.setdefault(preferred, []).append(topic_partition)
    return [
        topic_partition
        for broker_id, lost in sorted(missing.items())
        if broker_id in image.brokers and 100 * len(lost) > percentage * totals[broker_id]
        for topic_partition in lost
        if broker_id in _partition(image, topic_partition).isr
    ]


def _is_preferred(partition: PartitionImage) -> bool:
    return partition.leader == partition.replicas[0]


def _partition(image: ClusterImage, topic_partition: TopicPartition) -> PartitionImage:
    return image.topics[topic_partition.topic].partitions[topic_partition.partition]


def _partitions(image: ClusterImage) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    for topic in image.topics.values():
        for number, partition in enumerate(topic.partitions):
            yield TopicPartition(topic.name, number), partition
