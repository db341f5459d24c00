"""How a member takes part in a rebalance of a classic group: join, deal if it leads, sync.

    joining (the answer waits for all members) -> dealing (the leader, which may wait for metadata)
    -> syncing (the answer waits for the leader) -> an assignment

It ends with an assignment or with an error, for which `ClassicMembership` knows what to do; late
answers to requests of an earlier attempt are told apart by `_attempt`, and ignored. No heartbeats
go out meanwhile: the waiting requests are sign of life enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import Assignor, MemberAssignment, RebalanceProtocol
from headwater.client.assignors.consumer_protocol import read_assignment
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.consumer.membership.classic_lead import AssignorError, ClassicLead
from headwater.client.consumer.membership.classic_requests import ClassicMember
from headwater.client.consumer.membership.state import Refresh
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.wire.codec import MalformedMessageError
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

#: A join is answered when all members have come, or their time is over; then the answer travels.
_ANSWER_TRAVELS_S: Final = 5.0


class JoinOutcome(Protocol):
    """Who hears how it ended."""

    def on_assigned(self, assignment: MemberAssignment, now_s: float) -> None: ...

    def on_refused(self, code: ErrorCode, now_s: float) -> None:
        """The coordinator answered with that."""
        ...

    def on_unreachable(self, error: KafkaError, now_s: float) -> None:
        """There was no answer."""
        ...

    def on_unassignable(self, error: AssignorError, now_s: float) -> None:
        """What members tell each other makes no sense, or the assignor failed."""
        ...


class ClassicJoin:
    def __init__(
        self,
        member: ClassicMember,
        *,
        coordinator: CoordinatorOf,
        metadata: ClusterMetadata,
        assignors: Sequence[Assignor],
        request_timeout_s: float,
        refresh: Refresh,
        outcome: JoinOutcome,
    ) -> None:
        self._member = member
        self._coordinator = coordinator
        self._metadata = metadata
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._request_timeout_s = request_timeout_s
        self._refresh = refresh
        self._outcome = outcome
        self._attempt = 0
        #: What is to be sent next, and when; None while that is under way, or nothing is.
        self._request: Callable[[], JoinGroupRequest | SyncGroupRequest] | None = None
        self._due_s = 0.0
        self._is_dealing = False
        #: The lead of the group's last generation, if this member has it.
        self.lead: ClassicLead | None = None

    def begin(
        self,
        topics: Collection[str],
        owned: frozenset[TopicPartition],
        reason: str | None,
        due_s: float,
    ) -> None:
        self.stop()
        self._due_s = due_s
        self._request = lambda: self._member.join_request(
            topics, owned, [*self._assignors.values()], reason
        )

    def stop(self) -> None:
        """Whatever is still under way does not matter any more."""
        self._attempt += 1
        self._request = None
        self._is_dealing = False

    def metadata_changed(self, now_s: float) -> None:
        if self._is_dealing and self.lead is not None:
            self.lead.look()
            self._deal(self.lead, now_s)

    def asks(self, now_s: float) -> list[Ask]:
        if self._request is None or now_s < self._due_s:
            return []
        request, self._request = self._request(), None
        is_join = isinstance(request, JoinGroupRequest)
        rebalance_s = self._member.rebalance_timeout_ms / 1000 + _ANSWER_TRAVELS_S
        return [
            Ask(
                request,
                self._coordinator,
                partial(self._joined if is_join else self._synced, self._attempt),
                partial(self._failed, self._attempt),
                timeout_s=max(self._request_timeout_s, rebalance_s if is_join else 0.0),
                lane=Lane.COORDINATION,
            )
        ]

    def wake_at_s(self) -> float | None:
        return None if self._request is None else self._due_s

    # -- outcomes --------------------------------------------------------------------------------

    def _failed(self, attempt: int, error: KafkaError, now_s: float) -> None:
        if attempt == self._attempt:
            self._outcome.on_unreachable(error, now_s)

    def _joined(self, attempt: int, answer: JoinGroupResponse, now_s: float) -> None:
        if attempt != self._attempt:
            return
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member.member_id = answer.member_id
        if answer.error_code:
            self._outcome.on_refused(ErrorCode.from_wire(answer.error_code), now_s)
            return
        if answer.protocol_name not in self._assignors:
            self._outcome.on_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now_s)
            return
        self._member.member_id = answer.member_id
        self._member.generation_id = answer.generation_id
        self._member.protocol_name = answer.protocol_name
        self.lead = None
        if answer.leader != answer.member_id:
            self._sync({}, now_s)
            return
        try:
            self.lead = ClassicLead(answer)
        except MalformedMessageError as error:
            self._give_up(f"A member of the group is no consumer: {error}", now_s)
            return
        self._is_dealing = True
        self._deal(self.lead, now_s)

    def _deal(self, lead: ClassicLead, now_s: float) -> None:
        if not lead.is_informed(self._metadata):
            self._refresh(lead.topics)
            return
        self._is_dealing = False
        if lead.is_over:
            lead.keep(self._metadata)
            self._sync({}, now_s)
            return
        try:
            assignor = self._assignors[self._member.protocol_name or ""]
            assignments = lead.deal(assignor, self._metadata)
        except AssignorError as error:
            self._outcome.on_unassignable(error, now_s)
            return
        self._sync(assignments, now_s)

    def _sync(self, assignments: dict[str, bytes], now_s: float) -> None:
        self._due_s = now_s
        self._request = lambda: self._member.sync_request(assignments)

    def _synced(self, attempt: int, answer: SyncGroupResponse, now_s: float) -> None:
        if attempt != self._attempt:
            return
        if answer.error_code:
            self._outcome.on_refused(ErrorCode.from_wire(answer.error_code), now_s)
            return
        try:
            assignment = read_assignment(answer.assignment)
        except MalformedMessageError as error:
            self._give_up(f"The leader's assignment cannot be read: {error}", now_s)
            return
        assignor = self._assignors[self._member.protocol_name or ""]
        lead = self.lead
        if lead is not None and lead.is_over and assignor.protocol is RebalanceProtocol.COOPERATIVE:
            lead.come_back(assignment.partitions)
        assignor.on_assignment(assignment, self._member.generation_id)
        self._outcome.on_assigned(assignment, now_s)

    def _give_up(self, why: str, now_s: float) -> None:
        self._outcome.on_unassignable(AssignorError(why), now_s)
