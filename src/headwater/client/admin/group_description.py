"""What a cluster tells of a group: its members and what they have, of either protocol.

A classic group's members bring their subscription and assignment as bytes that only they and their
leader need to understand. Those of consumers are in a format of Kafka's own; those of others, like
Connect's workers, stay unread.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import BrokerNode
from headwater.wire.codec import MalformedMessageError, decode
from headwater.wire.messages import consumer_group_describe as consumer_messages
from headwater.wire.messages import describe_groups as classic_messages
from headwater.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL: Final = "consumer"
#: The kinds of groups that consumers make.
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
#: Of a member that speaks the consumer protocol, in a group that has members of both.
_UPGRADED_MEMBER: Final = 1
_VERSION_SIZE: Final = 2


class GroupMember(NamedTuple):
    """A member; what only members of the consumer protocol have is None for others."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    subscribed_topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None = None
    member_epoch: int | None = None
    #: Whether it speaks the consumer protocol, in a group of that kind.
    is_upgraded: bool | None = None


class GroupDescription(NamedTuple):
    """A group; the epochs are None in the classic protocol."""

    group_id: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: BrokerNode
    members: tuple[GroupMember, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


def classic_description(
    group: classic_messages.DescribedGroup, coordinator: BrokerNode
) -> GroupDescription:
    """A group as DescribeGroups tells of it."""
    is_read = group.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        group_id=group.group_id,
        kind=CLASSIC,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                subscribed_topics=_subscription(member.member_metadata) if is_read else (),
                assignment=_assignment(member.member_assignment) if is_read else (),
            )
            for member in group.members
        ),
    )


def consumer_description(
    group: consumer_messages.DescribedGroup, coordinator: BrokerNode
) -> GroupDescription:
    """A group as ConsumerGroupDescribe tells of it."""
    return GroupDescription(
        group_id=group.group_id,
        kind=CONSUMER,
        state=group.group_state,
        protocol_type=CONSUMER_PROTOCOL,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                subscribed_topics=tuple(member.subscribed_topic_names),
                assignment=_partitions(member.assignment.topic_partitions),
                target_assignment=_partitions(member.target_assignment.topic_partitions),
                member_epoch=member.member_epoch,
                is_upgraded=None
                if member.member_type < 0
                else member.member_type == _UPGRADED_MEMBER,
            )
            for member in group.members
        ),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _partitions(
    topics: Iterable[consumer_messages.TopicPartitions],
) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, number)
            for topic in topics
            for number in topic.partitions
        )
    )


def _assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a consumer's assignment; none where it cannot be read."""
    version = _version(data, ConsumerProtocolAssignment.VERSIONS.highest)
    if version is None:
        return ()
    try:
        assignment, _ = decode(ConsumerProtocolAssignment, data, version, _VERSION_SIZE)
    except MalformedMessageError:
        return ()
    return tuple(
        sorted(
            TopicPartition(topic.topic, number)
            for topic in assignment.assigned_partitions
            for number in topic.partitions
        )
    )


def _subscription(data: bytes) -> tuple[str, ...]:
    version = _version(data, ConsumerProtocolSubscription.VERSIONS.highest)
    if version is None:
        return ()
    try:
        subscription, _ = decode(ConsumerProtocolSubscription, data, version, _VERSION_SIZE)
    except MalformedMessageError:
        return ()
    return tuple(subscription.topics)


def _version(data: bytes, highest: int) -> int | None:
    """The version in front; newer ones begin like the newest known. None for empty bytes."""
    if len(data) < _VERSION_SIZE:
        return None
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    return min(version, highest) if version >= 0 else None
