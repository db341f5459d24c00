"""A simulated member of a consumer group that speaks the classic protocol, request by request.

It finds the coordinator, joins, syncs, assigns ranges if it leads, sends heartbeats, commits what
it read, and leaves, or is killed by whoever runs it. `consume` is a whole consumer; others use the
steps, see `transactional_copier`.

A commit that stays without an answer may still be under way, and reach the coordinator behind a
later one. So the member then joins as a new one: in the next generation the old commit is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.sim.clients.broker_link import PASSING, BrokerLink, Unanswered
from headwater.sim.clients.committed_reader import CommittedReader
from headwater.sim.clients.coordinator_lookup import find_coordinator
from headwater.sim.clients.group_offsets import commit_request, fetch_committed
from headwater.sim.clients.range_assignment import (
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    assign_ranges,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from headwater.sim.histories.group_history import GroupHistory
from headwater.sim.histories.history import History, PropertyViolated
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from headwater.wire.messages.offset_commit import OffsetCommitResponse
from headwater.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

#: The group goes on without this member, or waits for it to join again.
REJOIN: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
#: The coordinator knows no member of that id, so a new one is needed.
_UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_ANSWER_TIME_S: Final = 5.0
#: Versions of JoinGroup, SyncGroup, Heartbeat, LeaveGroup and OffsetCommit, of several ages. The
#: oldest know neither static members nor ids that are handed out first.
_AGES: Final = ((9, 5, 4, 5, 9), (7, 5, 4, 4, 8), (5, 3, 3, 3, 7), (3, 2, 2, 2, 6), (1, 0, 0, 0, 2))
_STATIC_SINCE: Final = 5


class MustRejoin(Exception):
    """This member is not part of the group's current generation, or soon will not be."""


class GroupMember:
    def __init__(
        self,
        link: BrokerLink,
        history: History,
        groups: GroupHistory,
        group_id: str,
        partition_counts: Mapping[str, int],
        *,
        instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.assigned: list[TopicPartition] = []
        # What was not acknowledged to its producer may be gone after a power loss.
        self.reader = CommittedReader(link, history, history.acknowledged_end)
        self._link = link
        self._groups = groups
        self._partition_counts = partition_counts
        random = link.random
        ages = _AGES if instance_id is None else [age for age in _AGES if age[0] >= _STATIC_SINCE]
        self._join_version, self._sync_version, self._beat_version, self._leave_version, age = (
            random.choice(ages)
        )
        self._commit_version = age
        self._session_ms = random.choice((1_500, 6_000))
        self._rebalance_ms = random.choice((2_000, 8_000))
        self._heartbeat_at_s = 0.0

    # -- a whole consumer ------------------------------------------------------------------------

    async def consume(self) -> None:
        """Read and commit without end."""
        while True:
            try:
                await self._consume_generation()
            except MustRejoin:
                await self._link.pause()

    async def _consume_generation(self) -> None:
        await self.join()
        await self.go_to_committed()
        while True:
            await self.heartbeat()
            found = await self.reader.fetch()
            for record in found:
                self._groups.deliver(self.group_id, record.partition, record.offset)
            if found:
                await self.commit({each.partition: each.offset + 1 for each in found})
            if not found or self._link.random.random() < 0.3:
                await self._link.pause()

    async def go_to_committed(self) -> None:
        """Let the reader go on where the group is."""
        self.reader.positions = await fetch_committed(
            self._link, self._groups, self.group_id, self.assigned
        )

    # -- joining ---------------------------------------------------------------------------------

    async def join(self) -> None:
        """Join however often it takes, until the leader has told who owns what."""
        await find_coordinator(self._link, CoordinatorKind.GROUP, self.group_id)
        while True:
            try:
                joined = await self._ask_to_join()
                if joined is not None and await self._sync(joined):
                    break
            except Unanswered:
                pass
            await self._link.pause()
        self._heartbeat_at_s = asyncio.get_running_loop().time()
        owner = self.instance_id or self.member_id
        self._groups.own(self.group_id, self.generation, owner, self.assigned)

    async def _ask_to_join(self) -> JoinGroupResponse | None:
        """What the group is now, or nothing if it has to be asked again."""
        protocol = JoinGroupRequestProtocol(
            name=PROTOCOL_NAME, metadata=encode_subscription(list(self._partition_counts))
        )
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        answer = await self._link.ask(
            request,
            JoinGroupResponse,
            version=self._join_version,
            timeout_s=self._rebalance_ms / 1000 + _ANSWER_TIME_S,
        )
        error = ErrorCode.from_wire(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return None
        if self._is_out(error, "join"):
            return None
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        return answer

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        """Tell as the leader who owns what, and hear what this member owns."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL_NAME,
        )
        if joined.leader == self.member_id and not joined.skip_assignment:
            subscriptions = {each.member_id: bytes(each.metadata) for each in joined.members}
            request.assignments = [
                SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(owned))
                for member, owned in assign_ranges(subscriptions, self._partition_counts).items()
            ]
        answer = await self._link.ask(
            request,
            SyncGroupResponse,
            version=self._sync_version,
            timeout_s=self._rebalance_ms / 1000 + _ANSWER_TIME_S,
        )
        if self._is_out(ErrorCode.from_wire(answer.error_code), "sync"):
            return False
        self.assigned = decode_assignment(bytes(answer.assignment))
        return True

    def _is_out(self, error: ErrorCode, step: str) -> bool:
        """Whether the member has to join again; what no member should hear breaks a property."""
        if error in _UNKNOWN:
            self.member_id = ""
        elif error not in REJOIN and error not in PASSING and error is not ErrorCode.NONE:
            raise PropertyViolated(
                f"a member can {step}: {self._link.name} got {error.name} in {self.group_id}"
            )
        return error is not ErrorCode.NONE

    # -- being a member --------------------------------------------------------------------------

    def check_membership(self, error: ErrorCode, step: str) -> None:
        """Raise `MustRejoin` if a coordinator's error says so."""
        if error not in PASSING and self._is_out(error, step):
            raise MustRejoin(error.name)

    async def heartbeat(self) -> None:
        """Say that this member is alive, if it is time; `MustRejoin` if the group says so."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._heartbeat_at_s + self._session_ms / 4000:
            return
        self._heartbeat_at_s = now_s
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        try:
            answer = await self._link.ask(request, HeartbeatResponse, version=self._beat_version)
        except Unanswered:
            return
        self.check_membership(ErrorCode.from_wire(answer.error_code), "send a heartbeat")

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit; `MustRejoin` if the coordinator refuses or nobody knows what became of it."""
        request = commit_request(
            self.group_id, self.generation, self.member_id, self.instance_id, offsets
        )
        try:
            answer = await self._link.ask(
                request, OffsetCommitResponse, version=self._commit_version
            )
        except Unanswered as unanswered:
            self.come_back_as_another()
            raise MustRejoin("a commit may be under way") from unanswered
        for topic in answer.topics:
            for each in topic.partitions:
                error = ErrorCode.from_wire(each.error_code)
                self.check_membership(error, "commit")
                if error is ErrorCode.NONE:
                    partition = TopicPartition(topic.name, each.partition_index)
                    self._groups.commit(self.group_id, {partition: offsets[partition]})
                else:
                    self.come_back_as_another()
                    raise MustRejoin(error.name)

    def come_back_as_another(self) -> None:
        """Join as a new member next time, so that all that is under way belongs to nobody."""
        self.member_id = ""

    async def leave(self) -> None:
        """Leave in order; whether the coordinator hears of it is its own affair."""
        if not self.member_id:
            return
        request = LeaveGroupRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            members=[MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)],
        )
        with contextlib.suppress(Unanswered):
            await self._link.ask(request, LeaveGroupResponse, version=self._leave_version)
        self.come_back_as_another()
