"""A static member that was restarted comes back: it takes its old place, under a new member id.

If the group is stable and would vote as before, nothing is rebalanced: the member keeps what it was
assigned, and only the new id is written down. The old one is fenced from then on.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import KafkaError
from headwater.coordinator.group.classic.errors import as_member_error
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.rebalancing.join_answer import join_answer
from headwater.coordinator.group.classic.rebalancing.rebalance import Rebalance
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.group import record_of
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.messages.join_group import JoinGroupResponse

#: From this version on a leader can be told that it leads but need not assign.
_SKIP_ASSIGNMENT_SINCE: Final = 9


class StaticReplacement:
    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def replace(
        self,
        group: ClassicGroup,
        new: ClassicMember,
        api_version: int,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        old = group.members[group.static_ids[str(new.group_instance_id)]]
        old_leader_id = group.leader_id
        new.assignment = old.assignment
        self._swap(group, old, new)
        group.joining.park(new.member_id, reply)
        reason = f"the static member {new.group_instance_id} was started again"
        if group.state is not ClassicState.STABLE:
            # Between the halves of a rebalance the leader may be assigning to the old id just now.
            return Outcome(self._rebalance.begin_or_advance(group, reason, now_ms))
        if group.elect_protocol() != group.protocol_name:
            return Outcome(self._rebalance.begin(group, reason, now_ms))
        generation = group.generation

        def is_settled_elsewhere() -> bool:
            """Whether a rebalance or another replacement came in between, and answers."""
            return (
                group.state is not ClassicState.STABLE
                or group.generation != generation
                or group.members.get(new.member_id) is not new
            )

        def on_safe() -> None:
            if is_settled_elsewhere():
                return
            if api_version >= _SKIP_ASSIGNMENT_SINCE:
                is_leader = group.leader_id == new.member_id
                answer = join_answer(group, new.member_id, skips_assignment=is_leader)
            else:
                # A leader would assign at once, which nobody waits for: so it is told that the
                # leader is who it was before.
                answer = join_answer(group, new.member_id, leader_id=old_leader_id)
            self._rebalance.sessions.extend(group, new)
            group.joining.send(new.member_id, answer)

        def on_failed(error: KafkaError) -> None:
            if is_settled_elsewhere():
                return
            group.joining.fail(new.member_id, as_member_error(error))
            self._swap(group, new, old)

        return Outcome([record_of(group)], on_safe, on_failed)

    def _swap(self, group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> None:
        self._rebalance.sessions.end(group, old.member_id)
        group.replace_static(old, new)
        self._rebalance.sessions.extend(group, new)
