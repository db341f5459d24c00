"""LeaveGroup: members go at once, and the others need not wait for their sessions to end.

An administrator removes static members this way too, by their group instance ids alone.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.errors import unknown_member
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.rebalancing.rebalance import Rebalance
from headwater.coordinator.outcome import Change
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


class ClassicLeave:
    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, now_ms: int
    ) -> Change[LeaveGroupResponse]:
        """Remove the members that can be, with an answer for each, and then rebalance once."""
        group.check_alive()
        answers: list[MemberResponse] = []
        gone_ids: list[str] = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                gone_ids.append(self._remove(group, identity))
            except KafkaError as error:
                code = error.code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        response = LeaveGroupResponse(members=answers)
        if not gone_ids or group.is_empty:
            return Change(response)
        reason = f"{', '.join(gone_ids)} left"
        return Change(response, self._rebalance.begin_or_advance(group, reason, now_ms))

    def _remove(self, group: ClassicGroup, identity: MemberIdentity) -> str:
        """Remove a member and return its id."""
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id:
            known_id = None if instance_id is None else group.static_ids.get(instance_id)
            if known_id is None:
                raise unknown_member(group.group_id, member_id)
            member_id = known_id
        elif member_id in group.pending_ids:
            self._rebalance.sessions.end(group, member_id)
            group.pending_ids.remove(member_id)
            return member_id
        else:
            group.check_member(member_id, instance_id)
        self._rebalance.sessions.end(group, member_id)
        group.remove(member_id)
        return member_id
