"""JoinGroup: a client becomes a member, or a member says that it is there and what it supports.

A client that comes without a member id gets one first, and has to come back with it (KIP-394): so
a client that gives up while it waits leaves nothing behind. Static members need no such protection,
because their group instance id tells that they are the same: they take their old place at once.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.errors import check_group_id, unknown_member
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember, JoiningClient
from headwater.coordinator.group.classic.rebalancing.join_answer import join_answer
from headwater.coordinator.group.classic.rebalancing.rebalance import Rebalance, Records
from headwater.coordinator.group.classic.rebalancing.static_replacement import StaticReplacement
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.metadata_limits import (
    check_group_metadata,
    check_member_metadata,
)
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

#: From this version on a dynamic member is handed its id first.
_MEMBER_ID_FIRST_SINCE: Final = 4
_NO_MEMBER_ID: Final = ""
#: As much of a client's reason as the log gets to see.
_REASON_LENGTH_MAX: Final = 100


class ClassicJoin:
    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance) -> None:
        self._environment = environment
        self._rebalance = rebalance
        self._replacement = StaticReplacement(rebalance)

    def check_request(self, request: JoinGroupRequest) -> None:
        """Raise for what no group would accept."""
        check_group_id(request.group_id)
        integer = self._environment.settings.integer
        shortest_ms = integer("group.min.session.timeout.ms")
        longest_ms = integer("group.max.session.timeout.ms")
        if not shortest_ms <= request.session_timeout_ms <= longest_ms:
            raise KafkaError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"A session takes {shortest_ms} to {longest_ms} ms, not "
                f"{request.session_timeout_ms}.",
            )
        check_member_metadata(
            request.group_id, _metadata_bytes(request), self._environment.settings
        )

    def join(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        group.check_alive()
        if self._is_full(group, _known_id(group, request)):
            return self._turn_away(group, request.member_id, now_ms, reply)
        self._check_metadata(group, request)
        if not group.supports(request.protocol_type, _protocols(request)):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"No protocol of the member is supported by all of the group {group.group_id}.",
            )
        if request.member_id == _NO_MEMBER_ID:
            return self._join_as_new(group, request, client, now_ms, reply)
        if request.member_id in group.pending_ids:
            if request.group_instance_id is not None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_MEMBER_ID, "The member id was not given to a static member."
                )
            return Outcome(self._add(group, request.member_id, request, client, now_ms, reply))
        return self._join_again(group, request, now_ms, reply)

    def _check_metadata(self, group: ClassicGroup, request: JoinGroupRequest) -> None:
        known = group.members.get(_known_id(group, request))
        others_bytes = group.metadata_bytes - (0 if known is None else known.metadata_bytes)
        size_bytes = others_bytes + _metadata_bytes(request)
        check_group_metadata(group.group_id, size_bytes, self._environment.settings)

    def _is_full(self, group: ClassicGroup, member_id: str) -> bool:
        size_max = self._environment.settings.integer("group.max.size")
        if group.state is ClassicState.EMPTY:
            return False
        if group.is_rebalancing:
            # Who waits is counted, not who is a member: the limit may have been lowered, and then
            # the last to join are those who have to go.
            return member_id not in group.joining and len(group.joining) >= size_max
        return member_id not in group.members and len(group.members) >= size_max

    def _turn_away(
        self, group: ClassicGroup, member_id: str, now_ms: int, reply: Reply[JoinGroupResponse]
    ) -> Outcome:
        reply.fail(
            KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The group {group.group_id} has as many members as it may.",
            )
        )
        if member_id in group.members:
            reason = f"{member_id} is one too many"
            return Outcome(self._rebalance.remove_member(group, member_id, reason, now_ms))
        return Outcome(self._rebalance.forget_pending(group, member_id, now_ms))

    def _join_as_new(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        instance_id = request.group_instance_id
        prefix = client.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{self._environment.new_uuid()}"
        if instance_id is not None and instance_id in group.static_ids:
            new = _new_member(member_id, request, client)
            return self._replacement.replace(group, new, client.api_version, now_ms, reply)
        if instance_id is None and client.api_version >= _MEMBER_ID_FIRST_SINCE:
            group.pending_ids.add(member_id)
            self._rebalance.sessions.await_pending(group, member_id, request.session_timeout_ms)
            reply.send(
                JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            )
            return Outcome()
        return Outcome(self._add(group, member_id, request, client, now_ms, reply))

    def _add(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Records:
        if group.is_rebalancing and group.previous_state is ClassicState.EMPTY:
            group.is_growing = True
        group.add(_new_member(member_id, request, client))
        group.newcomer_ids.add(member_id)
        group.joining.park(member_id, reply)
        self._rebalance.sessions.await_newcomer(group, member_id)
        reason = _reason(f"{member_id} joins", request)
        return self._rebalance.begin_or_advance(group, reason, now_ms)

    def _join_again(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        member = group.check_member(request.member_id, request.group_instance_id)
        is_same = member.supports_exactly(_protocols(request))
        match group.state:
            case ClassicState.COMPLETING_REBALANCE if is_same:
                # It did not get the answer, so it gets it again.
                reply.send(join_answer(group, member.member_id))
                return Outcome()
            case ClassicState.STABLE if is_same and group.leader_id != member.member_id:
                reply.send(join_answer(group, member.member_id))
                return Outcome()
            case ClassicState.EMPTY:
                raise unknown_member(group.group_id, member.member_id)
        # A leader that joins again saw something that the others did not, such as more partitions.
        group.change_protocols(member, _protocols(request))
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms(request)
        group.joining.park(member.member_id, reply)
        reason = _reason(f"{member.member_id} joins again", request)
        return Outcome(self._rebalance.begin_or_advance(group, reason, now_ms))


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """How long the others may wait for the member; the first version of the request has none."""
    if request.rebalance_timeout_ms < 0:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def _known_id(group: ClassicGroup, request: JoinGroupRequest) -> str:
    """The id under which the group knows the client: the old one of a static member's return."""
    return request.member_id or group.static_ids.get(request.group_instance_id or "", _NO_MEMBER_ID)


def _protocols(request: JoinGroupRequest) -> dict[str, bytes]:
    return {protocol.name: protocol.metadata for protocol in request.protocols}


def _metadata_bytes(request: JoinGroupRequest) -> int:
    return sum([len(each.name) + len(each.metadata) for each in request.protocols])


def _new_member(member_id: str, request: JoinGroupRequest, client: JoiningClient) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=client.client_id,
        client_host=client.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        protocol_type=request.protocol_type,
        protocols=_protocols(request),
    )


def _reason(event: str, request: JoinGroupRequest) -> str:
    return f"{event} ({request.reason[:_REASON_LENGTH_MAX]})" if request.reason else event
