"""Decides whether a topic may get more partitions, and what must be written for them.

Partitions are only ever added: nobody could say what should become of the records of one that is
taken away.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ClusterImage, TopicImage
from headwater.cluster.node_documents import TopicDocument, encode_topic
from headwater.cluster.node_locations import topic_path
from headwater.cluster.store.metadata_store import Operation, Set
from headwater.cluster.topics.cordoning import open_racks
from headwater.cluster.topics.creation import (
    PARTITIONS_PER_REQUEST_MAX,
    new_partitions,
    with_partitions,
)
from headwater.cluster.topics.deletion import find_topic
from headwater.cluster.topics.manual_assignment import check_added_partitions
from headwater.cluster.topics.new_topic import NewPartitions
from headwater.cluster.topics.placement import place_added_replicas


def plan_growth(
    request: NewPartitions,
    image: ClusterImage,
    active: Collection[int],
    generator: random.Random,
) -> TopicImage:
    """The topic with the partitions added; raises KafkaError."""
    topic = find_topic(request.topic, image)
    count = len(topic.partitions)
    _check_increase(count, request.total_count)
    added = range(count, request.total_count)
    replication_factor = topic.replication_factor
    if request.assignments is not None:
        replicas = check_added_partitions(
            request.assignments, added, image, active, replication_factor
        )
    else:
        racks = open_racks(image, replication_factor)
        first_replicas = topic.partitions[0].target
        replicas = place_added_replicas(racks, first_replicas, added, replication_factor, generator)
    partitions = topic.partitions + new_partitions(replicas, image.brokers, active)
    return TopicImage(topic.name, topic.topic_id, partitions)


def _check_increase(count: int, total_count: int) -> None:
    if total_count == count:
        reason = f"Topic already has {count} partitions."
    elif total_count < count:
        reason = f"Topic already has {count} partitions; {total_count} would not be an increase."
    elif total_count - count > PARTITIONS_PER_REQUEST_MAX:
        reason = f"One request may ask for {PARTITIONS_PER_REQUEST_MAX} partitions."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)


def growth_transactions(
    grown: TopicImage, count_before: int, controller_epoch: int
) -> list[list[Operation]]:
    """What adds the partitions to the topic, as `creation_transactions`."""
    document = TopicDocument.of(grown.topic_id, grown.partitions)
    added = dict(enumerate(grown.partitions[count_before:], count_before))
    first: list[Operation] = [Set(topic_path(grown.name), encode_topic(document))]
    return with_partitions(first, grown.name, added, controller_epoch)
