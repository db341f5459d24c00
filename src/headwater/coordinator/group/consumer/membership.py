"""Who may be, become or replace a member of a consumer group."""

from __future__ import annotations

from dataclasses import replace

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.draft import GroupDraft
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import JOIN_EPOCH, ConsumerMember
from headwater.coordinator.group.metadata_limits import (
    check_group_metadata,
    check_member_metadata,
)
from headwater.coordinator.live_settings import LiveSettings


def not_a_consumer_group(group_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {group_id} of the consumer protocol."
    )


def check_size(group: ConsumerGroup, member_id: str, settings: LiveSettings) -> None:
    """Raise GROUP_MAX_SIZE_REACHED if a newcomer would be one too many."""
    if member_id in group.members:
        return
    size_max = settings.integer("group.consumer.max.size")
    if len(group.members) >= size_max:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"Group {group.group_id} has {size_max} members, which is as many as it may.",
        )


def check_metadata(
    group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember, settings: LiveSettings
) -> None:
    """Raise INVALID_REQUEST if a member says more than it may, alone or with the others."""
    if member is before:
        return
    size_bytes = member.metadata_bytes
    check_member_metadata(group.group_id, size_bytes, settings)
    others = (each.metadata_bytes for each in group.members.values())
    others_bytes = sum(others) - (before.metadata_bytes if before.member_id in group.members else 0)
    check_group_metadata(group.group_id, others_bytes + size_bytes, settings)


def check_static_member(
    known: ConsumerMember | None, instance_id: str, member_id: str
) -> ConsumerMember:
    """The member of that instance id, if it still is the one who asks."""
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"There is no static member {instance_id}.")
    if known.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"The static member {instance_id} is {known.member_id} by now, not {member_id}.",
        )
    return known


def take_static_place(
    draft: GroupDraft, known: ConsumerMember | None, member_id: str, *, is_classic: bool
) -> ConsumerMember:
    """A static member joins: it is new, or it takes what its earlier self had.

    Between members of the consumer protocol the earlier one must have left for a while; one of the
    classic protocol is replaced at once, as it is there.
    """
    if known is None:
        return draft.group.members.get(member_id) or ConsumerMember(member_id)
    are_of_consumer_protocol = not is_classic and known.classic is None
    if are_of_consumer_protocol and not known.has_left_for_a_while:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"The static member {known.instance_id} is {known.member_id}, which has not left.",
        )
    successor = replace(known, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    draft.replace_member(known, successor)
    return successor
