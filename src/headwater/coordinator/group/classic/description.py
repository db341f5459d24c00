"""DescribeGroups: a classic group and its members, for people to look at."""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.state import ClassicState
from headwater.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember

#: From this version on a group that is not there is an error.
_NOT_FOUND_SINCE: Final = 6


def describe(group: ClassicGroup) -> DescribedGroup:
    """What members said and got is of interest, and certain, only while the group is stable."""
    protocol_name = group.protocol_name if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=protocol_name or "",
        members=[_describe_member(member, protocol_name) for member in group.members.values()],
    )


def describe_missing(group_id: str, api_version: int) -> DescribedGroup:
    """What is told of a group that does not exist, or is not a classic one."""
    described = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD)
    if api_version >= _NOT_FOUND_SINCE:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"There is no classic group {group_id}."
    return described


def _describe_member(member: ClassicMember, protocol_name: str | None) -> DescribedGroupMember:
    described = DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
    )
    if protocol_name is not None:
        described.member_metadata = member.protocols[protocol_name]
        described.member_assignment = member.assignment
    return described
