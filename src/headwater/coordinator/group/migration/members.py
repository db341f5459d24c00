"""Members of the classic protocol inside a consumer group: JoinGroup and its kin, answered at once.

Such a member is reconciled like all others. With JoinGroup it tells its subscription and what it
has, and is told its epoch, as a generation. SyncGroup hands out what it may have now, and a plain
Heartbeat tells whether it should join again: for a new epoch, to give partitions up, or because
some that it waits for are free.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.classic.stored.embedded_protocol import write_assignment
from headwater.coordinator.group.classic.stored.subscription import CONSUMER_PROTOCOL_TYPE
from headwater.coordinator.group.consumer.assigning.assignment import named_entries
from headwater.coordinator.group.consumer.assigning.rebalance import ConsumerRebalance
from headwater.coordinator.group.consumer.departure import ConsumerDeparture
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import (
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from headwater.coordinator.group.consumer.membership import (
    check_static_member,
)
from headwater.coordinator.group.consumer.timers import ConsumerTimers, Deadline
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.migration.join import MigratingJoin
from headwater.coordinator.group.migration.migration import Migration
from headwater.coordinator.outcome import Change, Outcome, Reply
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

#: From this version on a dynamic member is handed its id first.
_MEMBER_ID_FIRST_SINCE: Final = 4


class MigratingMembers:
    """What `ClassicProtocol` asks when a group is a consumer group."""

    def __init__(
        self,
        environment: GroupEnvironment,
        groups: Groups,
        timers: ConsumerTimers,
        rebalance: ConsumerRebalance,
        migration: Migration,
        departure: ConsumerDeparture,
    ) -> None:
        self._environment = environment
        self._groups = groups
        self._timers = timers
        self._departure = departure
        self._join = MigratingJoin(environment, timers, rebalance, migration)

    # -- requests --------------------------------------------------------------------------------

    def join(
        self,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        return self._join.join(self._group(request.group_id), request, client, now_ms, reply)

    def sync(
        self, request: SyncGroupRequest, now_ms: int, reply: Reply[SyncGroupResponse]
    ) -> Outcome:
        group = self._group(request.group_id)
        member, side = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        _check_protocol(request.protocol_type, CONSUMER_PROTOCOL_TYPE)
        _check_protocol(request.protocol_name, side.protocols[0].name)
        # Who still gives partitions up has to finish that, and joins again by itself then.
        is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
        if group.epoch > member.epoch and not is_revoking:
            raise self._must_rejoin(group, member)
        entries = named_entries(member.assigned, self._environment.image())
        answer = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(
                ((name, numbers) for name, _, numbers in entries), side.protocols[0].metadata
            ),
        )

        def on_safe() -> None:
            self._timers.cancel(Deadline.SYNC, group.group_id, member.member_id)
            self._timers.hear_of_classic(group.group_id, member)
            reply.send(answer)

        return Outcome(on_safe=on_safe, on_failed=reply.fail, follows_writes=True)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> None:
        group = self._group(request.group_id)
        member, _ = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._timers.hear_of_classic(group.group_id, member)
        waited = member.state is MemberState.UNRELEASED_PARTITIONS
        if (
            member.epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (waited and not group.waits_for_others(member))
        ):
            raise self._must_rejoin(group, member)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Change[LeaveGroupResponse]:
        """Also how an administrator removes members, of either protocol."""
        group = self._group(request.group_id)
        answers: list[MemberResponse] = []
        leaving: dict[str, ConsumerMember] = {}
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaving_member(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        records = self._departure.remove(group, list(leaving.values()), now_ms)
        return Change(LeaveGroupResponse(members=answers), records)

    # -- shared ----------------------------------------------------------------------------------

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self._groups.find_of(ConsumerGroup, group_id)
        if group is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"The group {group_id} speaks another protocol."
            )
        return group

    def _must_rejoin(self, group: ConsumerGroup, member: ConsumerMember) -> KafkaError:
        """It gets its rebalance timeout to do so, counted from when it was first told."""
        self._timers.start_if_absent(
            Deadline.REJOIN, group.group_id, member, member.rebalance_timeout_ms
        )
        return KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"Group {group.group_id} is in epoch {group.epoch}: join again.",
        )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicSide]:
    """The member, and what it offers; raises if it is unknown here or speaks the other protocol."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = check_static_member(group.static_member(instance_id), instance_id, member_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} speaks the consumer protocol."
        )
    return member, member.classic


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.member(identity.member_id)
    known = group.static_member(instance_id)
    # An administrator names static members by their instance ids alone.
    member_id = identity.member_id or (known.member_id if known is not None else "")
    return check_static_member(known, instance_id, member_id)


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Member {member.member_id} is in generation {member.epoch}, not in {generation}.",
        )


def _check_protocol(claimed: str | None, actual: str) -> None:
    """Older versions of the request claim nothing."""
    if claimed is not None and claimed != actual:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The member was told to use {actual}, not {claimed}.",
        )
