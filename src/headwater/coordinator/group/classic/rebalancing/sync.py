"""SyncGroup: the leader hands in everybody's assignment, and each member gets its own.

Members wait until the leader has asked and the assignments are safe, so that a coordinator that
takes over knows them. If they cannot be written, everybody hears the error and joins again.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.checks import check
from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.errors import (
    as_member_error,
    rebalance_in_progress,
    unknown_member,
)
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.rebalancing.rebalance import Rebalance
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.group import record_of
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.metadata_limits import check_group_metadata
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicSync:
    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance) -> None:
        self._environment = environment
        self._rebalance = rebalance

    def sync(
        self,
        group: ClassicGroup,
        request: SyncGroupRequest,
        now_ms: int,
        reply: Reply[SyncGroupResponse],
    ) -> Outcome:
        group.check_alive()
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        _check_protocol(request.protocol_type, group.protocol_type)
        _check_protocol(request.protocol_name, group.protocol_name)
        match group.state:
            case ClassicState.PREPARING_REBALANCE:
                raise rebalance_in_progress(group.group_id)
            case ClassicState.COMPLETING_REBALANCE:
                is_leader = group.leader_id == member.member_id
                if is_leader:
                    size_bytes = sum([len(each.assignment) for each in request.assignments])
                    check_group_metadata(group.group_id, size_bytes, self._environment.settings)
                self._rebalance.has_synced(group, member.member_id)
                group.syncing.park(member.member_id, reply)
                if is_leader:
                    return self._store(group, _assignments(request), now_ms)
                return Outcome()
            case ClassicState.STABLE:
                self._rebalance.has_synced(group, member.member_id)
                self._rebalance.sessions.extend(group, member)
                reply.send(_answer(group, member))
                return Outcome()
        raise unknown_member(group.group_id, request.member_id)

    def _store(self, group: ClassicGroup, handed_in: Mapping[str, bytes], now_ms: int) -> Outcome:
        """Write down what the leader decided; whom it left out gets nothing."""
        generation = group.generation
        if group.storing_generation == generation:
            return Outcome()  # The leader asked twice, and is answered with the others.
        group.storing_generation = generation
        assignments = {member_id: handed_in.get(member_id, b"") for member_id in group.members}

        def is_awaited() -> bool:
            """Whether no other rebalance has begun in the meantime."""
            if group.storing_generation == generation:
                group.storing_generation = None
            is_current = group.generation == generation
            return is_current and group.state is ClassicState.COMPLETING_REBALANCE

        def on_safe() -> None:
            if is_awaited():
                self._hand_out(group, assignments, now_ms)

        def on_failed(error: KafkaError) -> None:
            if not is_awaited():
                return
            self._rebalance.drop_assignments(group, as_member_error(error))
            records = self._rebalance.begin(group, f"it could not be stored: {error}", now_ms)
            check(not records, "a group with members was stored as an empty one")

        return Outcome([record_of(group, assignments)], on_safe, on_failed)

    def _hand_out(self, group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> None:
        group.move_to(ClassicState.STABLE, now_ms)
        for member_id, assignment in assignments.items():
            group.members[member_id].assignment = assignment
        for member in group.members.values():
            if group.syncing.send(member.member_id, _answer(group, member)):
                self._rebalance.sessions.extend(group, member)


def _answer(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def _assignments(request: SyncGroupRequest) -> dict[str, bytes]:
    return {each.member_id: each.assignment for each in request.assignments}


def _check_protocol(claimed: str | None, actual: str | None) -> None:
    """Older versions of the request claim nothing."""
    if claimed is not None and claimed != actual:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The group has agreed on {actual}, not on {claimed}.",
        )
