"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from typing import Final

from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.consumer.assigning.assignment import Assignment, named_entries
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import ConsumerMember
from headwater.wire.messages.consumer_group_describe import Assignment as DescribedAssignment
from headwater.wire.messages.consumer_group_describe import (
    DescribedGroup,
    Member,
    TopicPartitions,
)

#: Which protocol a member speaks, in version 1 of the answer.
_CLASSIC: Final = 0
_CONSUMER: Final = 1


def describe_group(group: ConsumerGroup, assignor: str, image: ClusterImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor,
        members=[_describe(group, member, image) for member in group.members.values()],
    )


def _describe(group: ConsumerGroup, member: ConsumerMember, image: ClusterImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        # Kafka's word for none, though the field may be null.
        subscribed_topic_regex=member.regex or "",
        assignment=_described(member.assigned, image),
        target_assignment=_described(group.target(member.member_id), image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _described(assignment: Assignment, image: ClusterImage) -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions)
            for name, topic_id, partitions in named_entries(assignment, image)
        ]
    )
