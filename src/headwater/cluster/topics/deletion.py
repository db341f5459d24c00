"""What is written when topics are deleted, which takes two steps.

First the topic is marked below `/admin/delete_topics`: from then on it is certain to go, also if
the controller fails. Then its logs are deleted, and only when they are gone its nodes, the mark
among them. A topic that is found marked when a controller starts was left between the two.
"""

from __future__ import annotations

import uuid

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import topic_id_to_text
from headwater.cluster.image.image import ClusterImage, TopicImage
from headwater.cluster.node_locations import (
    partition_path,
    partition_state_path,
    partitions_path,
    topic_config_path,
    topic_deletion_path,
    topic_path,
)
from headwater.cluster.partitions.states import PARTITIONS_PER_MULTI
from headwater.cluster.store.errors import NoNodeError
from headwater.cluster.store.metadata_store import Create, Delete, MetadataStore, Operation


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


async def removal_transactions(store: MetadataStore, topic: str) -> list[list[Operation]]:
    """The second step: what removes of the topic what is there.

    All but the last of the transactions may be done at once. The last one removes the topic itself
    and its mark, so that what is interrupted is begun again.
    """
    ends = [
        partitions_path(topic),
        topic_path(topic),
        topic_config_path(topic),
        topic_deletion_path(topic),
    ]
    present = [path for path, node in zip(ends, await store.get_many(ends), strict=True) if node]
    partitions = (
        await _partitions_present(store, topic) if partitions_path(topic) in present else []
    )
    transactions: list[list[Operation]] = [
        [
            Delete(path)
            for number in partitions[start : start + PARTITIONS_PER_MULTI]
            for path in (partition_state_path(topic, number), partition_path(topic, number))
        ]
        for start in range(0, len(partitions), PARTITIONS_PER_MULTI)
    ]
    last = transactions.pop() if len(transactions) == 1 else []
    return [*transactions, [*last, *(Delete(path) for path in present)]]


async def _partitions_present(store: MetadataStore, topic: str) -> list[int]:
    try:
        names = await store.children(partitions_path(topic))
        # What is no partition is left to whoever put it there.
        return [int(name) for name in names if name.isascii() and name.isdecimal()]
    except NoNodeError:
        return []
