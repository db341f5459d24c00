"""What a member hears when it has joined: the generation, and the leader all subscriptions."""

from __future__ import annotations

from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

_NOBODY = ""


def join_answer(
    group: ClassicGroup,
    member_id: str,
    *,
    leader_id: str | None = None,
    skips_assignment: bool = False,
) -> JoinGroupResponse:
    """The answer; `leader_id` is set if the member is to believe in another leader."""
    told_leader_id = group.leader_id if leader_id is None else leader_id
    is_leader = told_leader_id == member_id
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=told_leader_id or _NOBODY,
        skip_assignment=skips_assignment,
        member_id=member_id,
        members=_subscriptions(group) if is_leader else [],
    )


def _subscriptions(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Whom the leader assigns to, and what they said when they joined."""
    name = group.protocol_name or ""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.protocols[name],
        )
        for member in group.members.values()
    ]
