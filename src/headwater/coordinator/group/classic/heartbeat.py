"""Heartbeat: a member is there, and hears whether it has to join again."""

from __future__ import annotations

from headwater.coordinator.group.classic.errors import rebalance_in_progress, unknown_member
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.sessions import MemberSessions
from headwater.wire.messages.heartbeat import HeartbeatRequest


def take_heartbeat(
    sessions: MemberSessions, group: ClassicGroup, request: HeartbeatRequest
) -> None:
    """Extend the member's session; raises what it has to know."""
    group.check_alive()
    member = group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    if group.is_empty:
        raise unknown_member(group.group_id, request.member_id)
    sessions.extend(group, member)
    if group.is_rebalancing:
        raise rebalance_in_progress(group.group_id)
