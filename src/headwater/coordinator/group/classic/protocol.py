"""The classic protocol of groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, step by step.

This is the door to it: each operation finds the group and hands it to the step that knows. Groups
come into being and go only by records, in `_replay`. While the topic is loaded a record is all that
is known of a group; later on it only confirms what the live group has decided by itself.

A group of the newer protocol can have members that speak this one, while it is migrated: their
requests go to `consumer_groups`, if somebody has set it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.base.checks import InvariantError, check
from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.description import describe, describe_missing
from headwater.coordinator.group.classic.errors import (
    as_member_error,
    check_group_id,
    rebalance_in_progress,
    unknown_member,
)
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.classic.rebalancing.join import ClassicJoin
from headwater.coordinator.group.classic.rebalancing.leave import ClassicLeave
from headwater.coordinator.group.classic.rebalancing.rebalance import Rebalance
from headwater.coordinator.group.classic.rebalancing.sync import ClassicSync
from headwater.coordinator.group.classic.sessions import MemberSessions
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.group import group_from, new_group_record
from headwater.coordinator.group.classic.stored.record import (
    GROUP_METADATA_KEY_VERSION,
    read_group_metadata_key,
    read_group_metadata_value,
)
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.migration.hook import ConsumerGroupHook
from headwater.coordinator.outcome import Change, HeldReply, Outcome, ProducerIdentity, Reply
from headwater.coordinator.stored_record import StoredRecord
from headwater.wire.messages.describe_groups import DescribedGroup
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from headwater.coordinator.group.shard import Replay


class ClassicProtocol:
    def __init__(self, environment: GroupEnvironment, groups: Groups) -> None:
        self._groups = groups
        self._rebalance = Rebalance(environment)
        self._join = ClassicJoin(environment, self._rebalance)
        self._sync = ClassicSync(environment, self._rebalance)
        self._leave = ClassicLeave(self._rebalance)
        #: Set by the newer protocol if it takes members of this one.
        self.consumer_groups: ConsumerGroupHook | None = None
        #: Groups whose first record is about to be written.
        self._unwritten: dict[str, ClassicGroup] = {}
        self._is_live = False

    # -- operations ------------------------------------------------------------------------------

    def join(
        self,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        """A client joins; it is answered when the others have joined too, or if it cannot."""
        self._join.check_request(request)
        group = self._groups.find(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._join.join(group, request, client, now_ms, reply)
        if group is not None and not group.is_empty:
            if self.consumer_groups is not None:
                return self.consumer_groups.join(request, client, now_ms, reply)
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"The group {request.group_id} speaks the protocol {group.kind}.",
            )
        if request.member_id:
            raise unknown_member(request.group_id, request.member_id)
        # An empty group of the other protocol makes way.
        tombstones = [] if group is None else group.tombstones()
        return self._found(request, client, now_ms, reply, tombstones)

    def sync(
        self, request: SyncGroupRequest, now_ms: int, reply: Reply[SyncGroupResponse]
    ) -> Outcome:
        """A member asks for its assignment, and the leader brings them."""
        group = self._find(request.group_id, request.member_id)
        if group is None:
            return self._hook(request.group_id).sync(request, now_ms, reply)
        return self._sync.sync(group, request, now_ms, reply)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> None:
        """A member is alive; raises what it has to know."""
        group = self._find(request.group_id, request.member_id)
        if group is None:
            self._hook(request.group_id).heartbeat(request, now_ms)
        else:
            take_heartbeat(self._rebalance.sessions, group, request)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Change[LeaveGroupResponse]:
        """Members go; `members` is what counts, also for the versions that know one only."""
        group = self._find(request.group_id, "")
        if group is None:
            return self._hook(request.group_id).leave(request, now_ms)
        return self._leave.leave(group, request, now_ms)

    def describe(self, group_id: str, api_version: int) -> DescribedGroup:
        """A group for people to look at; all that is wrong with it stands in the answer."""
        group = self._groups.find_of(ClassicGroup, group_id)
        if group is None or group.state is ClassicState.DEAD:
            return describe_missing(group_id, api_version)
        return describe(group)

    def _find(self, group_id: str, member_id: str) -> ClassicGroup | None:
        """The group; None if it is there but of the other protocol."""
        check_group_id(group_id)
        group = self._groups.find(group_id)
        if group is None:
            raise unknown_member(group_id, member_id)
        return group if isinstance(group, ClassicGroup) else None

    def _hook(self, group_id: str) -> ConsumerGroupHook:
        if self.consumer_groups is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"The group {group_id} speaks another protocol."
            )
        return self.consumer_groups

    def _found(
        self,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
        tombstones: Sequence[StoredRecord],
    ) -> Outcome:
        """The first member of a group joins: a record tells that there is such a group now."""
        group = ClassicGroup(request.group_id, state_since_ms=now_ms)
        # A member id is worth nothing before it is certain that there is a group.
        held = HeldReply(reply)
        outcome = self._join.join(group, request, client, now_ms, held.reply)
        check(not outcome.records, "a group with one member was stored as an empty one")
        self._unwritten[group.group_id] = group

        def on_failed(error: KafkaError) -> None:
            if self._unwritten.get(group.group_id) is not group:
                # It is in the topic by now, and may well stay there. But a generation that was
                # decided meanwhile ends with this coordinator: the next one begins at the same
                # number, and two members would be told to assign in it.
                has_moved = error.code is ErrorCode.NOT_COORDINATOR
                held.release(instead=error if has_moved else None)
                return
            del self._unwritten[group.group_id]
            self._rebalance.bury(group, as_member_error(error))
            held.fail(as_member_error(error))

        record = new_group_record(group.group_id, now_ms)
        return Outcome([*tombstones, record], held.release, on_failed)

    # -- records, and the life of the shard ------------------------------------------------------

    def replays(self) -> Mapping[int, Replay]:
        """What takes records, by the version of their keys."""
        return {GROUP_METADATA_KEY_VERSION: self._replay}

    def _replay(
        self,
        key: bytes,
        value: bytes | None,
        offset: int,
        producer: ProducerIdentity | None,
        now_ms: int,
    ) -> None:
        group_id = read_group_metadata_key(key)
        group = self._groups.find_of(ClassicGroup, group_id)
        if value is None:
            if group is not None:
                # Deleted, or of the newer protocol from now on: who waits asks again and sees.
                self._rebalance.bury(group, rebalance_in_progress(group_id))
                self._groups.remove(group_id)
            return
        if group is None or not self._is_live:
            group = self._unwritten.pop(group_id, None)
            if group is None:
                group = group_from(group_id, read_group_metadata_value(value))
            self._groups.put(group)
        group.stored = value

    def adopt(self, group_id: str, now_ms: int) -> ClassicGroup:
        """A record has made a group of the newer protocol a classic one: let its members join."""
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise InvariantError(f"{group_id} is no classic group")
        self._rebalance.resume(group, now_ms)
        if group.state is ClassicState.STABLE:
            records = self._rebalance.begin(group, "it speaks the classic protocol again", now_ms)
            check(not records, "a group with members was stored as an empty one")
        return group

    def on_loaded(self, now_ms: int) -> None:
        """Sessions of members start anew: the last coordinator knew when they were heard of."""
        self._is_live = True
        for group in self._groups:
            if isinstance(group, ClassicGroup):
                self._rebalance.resume(group, now_ms)

    def close(self, error: KafkaError) -> None:
        """Another broker takes over: who waits is told, and asks there."""
        for group in self._groups:
            if isinstance(group, ClassicGroup):
                self._rebalance.bury(group, error)


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
