"""Images of small clusters, made in a line."""

import uuid

from headwater.cluster.image.image import BrokerInfo, ClusterImage, PartitionImage, TopicImage
from headwater.cluster.image.layered_map import LayeredMap


def partition_of(replicas: tuple[int, ...], leader: int, isr: tuple[int, ...]) -> PartitionImage:
    return PartitionImage(replicas, isr, leader, leader_epoch=1, partition_epoch=1)


def image_of(
    partitions: list[PartitionImage], brokers: tuple[int, ...] = (1, 2, 3)
) -> ClusterImage:
    """A cluster of these brokers with one topic, "orders"."""
    topic = TopicImage("orders", uuid.UUID(int=1), tuple(partitions))
    return ClusterImage(
        brokers={broker_id: BrokerInfo(broker_id, ()) for broker_id in brokers},
        topics=LayeredMap({"orders": topic}),
    )
