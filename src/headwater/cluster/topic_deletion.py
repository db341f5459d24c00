"""What is written when topics are deleted, which takes two steps.

First the topic is marked below `/admin/delete_topics`: from then on it is certain to go, also if
the controller fails. Then its logs are deleted, and only when they are gone its nodes, the mark
among them. A topic that is found marked when a controller starts was left between the two.
"""

from __future__ import annotations

import uuid

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import topic_id_to_text
from headwater.cluster.image import ClusterImage, TopicImage
from headwater.cluster.node_locations import (
    partition_path,
    partition_state_path,
    partitions_path,
    topic_config_path,
    topic_deletion_path,
    topic_path,
)
from headwater.cluster.store.metadata_store import Create, Delete, Operation


def find_doomed_topic(target: str | uuid.UUID, image: ClusterImage) -> TopicImage:
    """The topic of that name or id; UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID if none."""
    if isinstance(target, str):
        return find_topic(target, image)
    topic = image.topic_by_id(target)
    if topic is None:
        reason = f"There is no topic with the id {topic_id_to_text(target)}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, reason)
    return topic


def find_topic(name: str, image: ClusterImage) -> TopicImage:
    """The topic of that name, or UNKNOWN_TOPIC_OR_PARTITION."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    return topic


def mark_operations(topic: str) -> list[Operation]:
    """The first step: what makes the deletion certain."""
    return [Create(topic_deletion_path(topic), b"")]


def removal_operations(topic: TopicImage) -> list[Operation]:
    """The second step: what removes the topic and its mark, as one transaction."""
    name = topic.name
    operations: list[Operation] = []
    for partition in range(len(topic.partitions)):
        operations.append(Delete(partition_state_path(name, partition)))
        operations.append(Delete(partition_path(name, partition)))
    operations += (
        Delete(partitions_path(name)),
        Delete(topic_path(name)),
        Delete(topic_config_path(name)),
        Delete(topic_deletion_path(name)),
    )
    return operations
