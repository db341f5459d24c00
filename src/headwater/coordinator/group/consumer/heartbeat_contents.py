"""What a ConsumerGroupHeartbeat says of its member, and what its answer says it may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.consumer.assigning.assignment import Assignment, sorted_entries
from headwater.coordinator.group.consumer.member import JOIN_EPOCH, ConsumerMember
from headwater.wire.messages.consumer_group_heartbeat import Assignment as AnsweredAssignment
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

_NOT_GIVEN: Final = -1
_SAYS_NOTHING: Final = (None, None, None, None)


def updated_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: JoiningClient
) -> ConsumerMember:
    """The member with what its heartbeat says; what it does not mention stays as it was."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    if (
        (names, regex, request.server_assignor, request.rack_id) == _SAYS_NOTHING
        and timeout_ms == _NOT_GIVEN
        and request.instance_id in (None, member.instance_id)
        and (client.client_id, client.client_host) == (member.client_id, member.client_host)
        and member.classic is None
    ):
        return member  # As most heartbeats do, it says nothing new.
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.client_host,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex or None,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == _NOT_GIVEN else timeout_ms
        ),
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def is_complete(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member tells everything, as it does after an error, and wants to be told."""
    has_subscription = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return request.member_epoch == JOIN_EPOCH or (
        request.rebalance_timeout_ms != _NOT_GIVEN
        and has_subscription
        and request.topic_partitions is not None
    )


def answered(assignment: Assignment) -> AnsweredAssignment:
    return AnsweredAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in sorted_entries(assignment)
        ]
    )
