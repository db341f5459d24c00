"""What a ConsumerGroupHeartbeat must look like, and the epoch that its member must be in."""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.assigning.assignment import Assignment, is_part_of
from headwater.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
)
from headwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

#: From this version on members choose their ids.
_OWN_ID_SINCE: Final = 1
_NOT_GIVEN: Final = -1


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
