"""A classic group as a record, and back: what a coordinator that takes over starts from."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.checks import require
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.record import (
    NO_TIMESTAMP,
    GroupMetadataValue,
    MemberMetadata,
    group_metadata_record,
)
from headwater.coordinator.stored_record import StoredRecord


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> StoredRecord:
    """The group as it is now, with these assignments by member id, or with those it has."""
    members = [
        _stored_member(
            group, member, member.assignment if assignments is None else assignments[member_id]
        )
        for member_id, member in group.members.items()
    ]
    since_ms = group.state_since_ms
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if since_ms is None else since_ms,
        members=members,
    )
    return group_metadata_record(group.group_id, value)


def new_group_record(group_id: str, now_ms: int) -> StoredRecord:
    """A group that has just come into being, and of which nothing is settled yet."""
    return group_metadata_record(group_id, GroupMetadataValue(current_state_timestamp=now_ms))


def group_from(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record tells of: stable, or empty."""
    since_ms = value.current_state_timestamp
    return ClassicGroup(
        group_id,
        state=ClassicState.STABLE if value.members else ClassicState.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_since_ms=None if since_ms == NO_TIMESTAMP else since_ms,
        members=[_member_from(value, member) for member in value.members],
    )


def _stored_member(group: ClassicGroup, member: ClassicMember, assignment: bytes) -> MemberMetadata:
    name = require(group.protocol_name, "the group %s has no protocol to store", group.group_id)
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.protocols[name],
        assignment=assignment,
    )


def _member_from(value: GroupMetadataValue, stored: MemberMetadata) -> ClassicMember:
    """Of what a member supports only the chosen protocol is known; it says the rest next time."""
    session_timeout_ms, rebalance_timeout_ms = stored.session_timeout, stored.rebalance_timeout
    return ClassicMember(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=session_timeout_ms,
        # The first version has none.
        rebalance_timeout_ms=session_timeout_ms
        if rebalance_timeout_ms < 0
        else rebalance_timeout_ms,
        protocol_type=value.protocol_type,
        protocols={value.protocol or "": stored.subscription},
        assignment=stored.assignment,
    )
