"""ConsumerGroupHeartbeat: what it must look like, what it says of its member, and its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.consumer.assigning.assignment import (
    Assignment,
    is_part_of,
    sorted_entries,
)
from headwater.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
)
from headwater.wire.messages.consumer_group_heartbeat import Assignment as AnsweredAssignment
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

#: From this version on members choose their ids.
_OWN_ID_SINCE: Final = 1
_NOT_GIVEN: Final = -1
_SAYS_NOTHING: Final = (None, None, None, None)


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, api_version: int) -> None:
    """Raise INVALID_REQUEST unless the fields that belong together are there."""
    epoch = request.member_epoch
    _check(request.group_id != "", "The group id is empty.")
    is_id_needed = api_version >= _OWN_ID_SINCE or epoch != JOIN_EPOCH
    _check(request.member_id != "" or not is_id_needed, "The member id is empty.")
    _check(request.instance_id != "", "The instance id is empty.")
    _check(request.rack_id != "", "The rack id is empty.")
    _check(epoch >= STATIC_LEAVE_EPOCH, f"There is no member epoch {epoch}.")
    if epoch == JOIN_EPOCH:
        _check(
            request.rebalance_timeout_ms != _NOT_GIVEN,
            "A member that joins must name its rebalance timeout.",
        )
        _check(
            request.topic_partitions is not None and not request.topic_partitions,
            "A member that joins cannot have partitions yet.",
        )
        _check(
            request.subscribed_topic_names is not None
            or request.subscribed_topic_regex is not None,
            "A member that joins must name topics or a regular expression.",
        )
    elif epoch == STATIC_LEAVE_EPOCH:
        _check(request.instance_id is not None, "Only a static member can leave for a while.")


def check_epoch(member: ConsumerMember, epoch: int, owned: Assignment | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the member is where the coordinator thinks it is."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    # The answer that told it of its epoch may have been lost. It may try again, if it has nothing
    # that could be somebody else's by now.
    is_one_behind = epoch == member.previous_epoch < member.epoch
    if not (is_one_behind and owned is not None and is_part_of(owned, member.assigned)):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member.member_id} is in epoch {member.epoch}, not in {epoch}; it must give "
            "up its partitions and join again.",
        )


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


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
