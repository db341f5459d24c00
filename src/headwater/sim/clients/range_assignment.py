"""What members of a group tell each other: subscriptions, and the range assignment of a leader.

The broker passes these on without looking; Kafka's clients have agreed on how they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.base.ids import TopicPartition
from headwater.coordinator.stored_record import decode_versioned, encode_versioned
from headwater.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headwater.wire.messages.consumer_protocol_assignment import (
    TopicPartition as AssignedPartitions,
)
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

PROTOCOL_TYPE = "consumer"
PROTOCOL_NAME = "range"
_VERSION = 1


def encode_subscription(topics: Sequence[str]) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), _VERSION)


def encode_assignment(partitions: Sequence[TopicPartition]) -> bytes:
    topics: dict[str, AssignedPartitions] = {}
    for topic, number in partitions:
        topics.setdefault(topic, AssignedPartitions(topic=topic)).partitions.append(number)
    return encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=list(topics.values())), _VERSION
    )


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions in an assignment; none of it at all means none."""
    if not data:
        return []
    assignment = decode_versioned(ConsumerProtocolAssignment, data)
    return [
        TopicPartition(each.topic, number)
        for each in assignment.assigned_partitions
        for number in each.partitions
    ]


def assign_ranges(
    subscriptions: Mapping[str, bytes], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """By member: in each topic a run of partitions, the first members one more if need be."""
    topics_of = {
        member: decode_versioned(ConsumerProtocolSubscription, data).topics
        for member, data in subscriptions.items()
    }
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic, count in sorted(partition_counts.items()):
        members = sorted(member for member in topics_of if topic in topics_of[member])
        first = 0
        for number, member in enumerate(members):
            size = count // len(members) + (number < count % len(members))
            assigned[member] += [TopicPartition(topic, first + each) for each in range(size)]
            first += size
    return assigned
