"""A consumer as a member of a group of the classic protocol.

    AWAY -> PREPARING -> JOINING -> SETTLING -> STABLE -> PREPARING ...

A rebalance begins when a heartbeat is answered with REBALANCE_IN_PROGRESS, or when this member has
a reason of its own. Before it joins again, the polling thread commits, runs the user's listener and
lets go of partitions: all of them if the group is eager, else only those of topics that are not
subscribed to any more. Then heartbeats pause, and `ClassicJoin` brings an assignment. A cooperative
member lets go of what that has not got any more, and joins once more so that others may have it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingValues
from headwater.client.assignors.assignor import Assignor, MemberAssignment, RebalanceProtocol
from headwater.client.assignors.known_assignors import common_protocol
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.fetching.subscribed_topics import SubscribedTopics
from headwater.client.consumer.membership.classic_heartbeats import Heartbeats
from headwater.client.consumer.membership.classic_join import ClassicJoin
from headwater.client.consumer.membership.classic_lead import AssignorError
from headwater.client.consumer.membership.classic_requests import ClassicMember
from headwater.client.consumer.membership.errors import CLASSIC, Reaction, group_error, reaction_to
from headwater.client.consumer.membership.membership import (
    GroupIdentity,
    Notify,
    RebalanceKind,
    Subscription,
)
from headwater.client.consumer.membership.state import MembershipState, Refresh, earliest_s
from headwater.client.machines.ask import Ask
from headwater.client.machines.completion import Completion
from headwater.wire.schema import Message

_AGAIN: Final = frozenset({Reaction.RETRY, Reaction.FIND_COORDINATOR})


class Step(Enum):
    #: Nothing is subscribed to, or what cannot pass has happened.
    AWAY = auto()
    #: It wants to join: first the polling thread lets go of what must not be kept.
    PREPARING = auto()
    JOINING = auto()
    #: It is assigned partitions, which the polling thread takes over.
    SETTLING = auto()
    STABLE = auto()


class ClassicMembership(MembershipState):
    """A `Membership`; see there. `refresh` asks for metadata, of these topics too."""

    def __init__(
        self,
        values: SettingValues,
        *,
        coordinators: CoordinatorCache,
        metadata: ClusterMetadata,
        assignors: Sequence[Assignor],
        policy: RetryPolicy,
        generator: random.Random,
        refresh: Refresh,
        notify: Notify,
    ) -> None:
        super().__init__(
            values,
            coordinators=coordinators,
            metadata=metadata,
            policy=policy,
            generator=generator,
            refresh=refresh,
            notify=notify,
            # Not the one of the joins, behind one that may wait there for long.
            farewell_lane=Lane.ORDINARY,
        )
        self._member = ClassicMember(
            group_id=self._group_id,
            instance_id=values.optional_text("group.instance.id"),
            rack_id=values.text("client.rack") or None,
            session_timeout_ms=values.integer("session.timeout.ms"),
            rebalance_timeout_ms=values.integer("max.poll.interval.ms"),
        )
        self._is_cooperative = common_protocol(assignors) is RebalanceProtocol.COOPERATIVE
        self._topics = SubscribedTopics(values, metadata)
        self._join = ClassicJoin(
            self._member,
            coordinator=self._coordinator,
            metadata=metadata,
            assignors=assignors,
            request_timeout_s=self._request_timeout_s,
            refresh=refresh,
            outcome=self,
        )
        self._heartbeats = Heartbeats(
            interval_s=values.integer("heartbeat.interval.ms") / 1000,
            session_s=self._member.session_timeout_ms / 1000,
            coordinator=self._coordinator,
            coordinators=coordinators,
            policy=policy,
            generator=generator,
            request=self._member.heartbeat_request,
            on_error=self._on_heartbeat_error,
        )
        self._step = Step.AWAY
        self._joined_topics: frozenset[str] = frozenset()
        #: What it is assigned, and whether the polling thread was told of it.
        self._target: frozenset[TopicPartition] = frozenset()
        self._target_is_told = False
        self._rejoin_reason: str | None = None
        #: When partitions that were to change hands are dealt out anew, if nobody lets go of them.
        self._deal_anew_s: float | None = None

    # -- what the core looks at ------------------------------------------------------------------

    @property
    def identity(self) -> GroupIdentity:
        return self._member.identity

    @property
    def is_stable(self) -> bool:
        return self._step is Step.STABLE

    @property
    def group_topics(self) -> frozenset[str]:
        """Topics of which the leader of the group needs metadata."""
        return frozenset() if self._join.lead is None else self._join.lead.topics

    # -- what the core says ----------------------------------------------------------------------

    def subscribe(self, subscription: Subscription, now_s: float) -> None:
        if not subscription.topics and subscription.pattern is None:
            self.leave(now_s)
            return
        is_other = self._topics.subscribe(subscription)
        if not self._topics.are_known:
            self._refresh(())
        if self._step is Step.AWAY:
            self._restart(now_s)
        elif is_other:
            self._want_rejoin("the subscription has changed", now_s)

    def metadata_changed(self, now_s: float) -> None:
        self._topics.look()
        self._join.metadata_changed(now_s)
        if self._step in (Step.STABLE, Step.SETTLING):
            lead = self._join.lead
            if self._topics.names != self._joined_topics:
                self._want_rejoin("the topics that match the subscription have changed", now_s)
            elif lead is not None and lead.has_changed(self._metadata):
                self._want_rejoin("the group's topics or their partitions have changed", now_s)
        self._go_on_if_handled(now_s)

    def enforce_rebalance(self, reason: str, now_s: float) -> None:
        if self._step is not Step.AWAY:
            self._want_rejoin(reason or "the user wants a rebalance", now_s)

    def leave(self, now_s: float) -> Completion[None]:
        completion = super().leave(now_s)
        self._topics.clear()
        self._rejoin_reason = None
        return completion

    # -- the machine -----------------------------------------------------------------------------

    def asks(self, now_s: float) -> list[Ask]:
        self._leave_if_overdue(now_s)
        if self._deal_anew_s is not None and now_s >= self._deal_anew_s:
            self._deal_anew_s = None
            self._want_rejoin("partitions were left to nobody", now_s)
        return [*self._leaving.asks(now_s), *self._heartbeats.asks(now_s), *self._join.asks(now_s)]

    def wake_at_s(self, now_s: float) -> float | None:
        return earliest_s(
            self._join.wake_at_s(),
            self._heartbeats.wake_at_s(),
            self._leaving.wake_at_s(),
            self._poll_due_s(),
            self._deal_anew_s,
        )

    def _is_watched(self) -> bool:
        # While it joins, its coordinator waits for others no longer than the same interval.
        return self._heartbeats.are_running and not self._poll_limit.is_overdue

    def _go_on(self, now_s: float) -> None:
        if self._step is Step.PREPARING:
            self._let_go_and_join(now_s)
        elif self._step is Step.SETTLING:
            self._settle(now_s)

    def _prepare(self, now_s: float) -> None:
        self._step = Step.PREPARING
        self._go_on_if_handled(now_s)

    def _let_go_and_join(self, now_s: float) -> None:
        owned = self._ownership.owned
        if self._is_cooperative:
            owned = frozenset(each for each in owned if each.topic not in self._topics.names)
        if owned:
            self._ownership.tell(RebalanceKind.REVOKED, owned)
        elif not self._poll_limit.is_overdue and self._topics.are_known:
            self._heartbeats.stop()
            self._begin_join(now_s)

    def _begin_join(self, due_s: float) -> None:
        self._step = Step.JOINING
        self._deal_anew_s = None
        self._joined_topics = self._topics.names
        reason, self._rejoin_reason = self._rejoin_reason, None
        self._join.begin(self._joined_topics, self._ownership.owned, reason, due_s)

    def _settle(self, now_s: float) -> None:
        """Let go of what is not assigned any more, then take over what is new."""
        owned = self._ownership.owned
        if self._target_is_told:
            self._step = Step.STABLE
            if self._rejoin_reason is not None:
                self._prepare(now_s)
            self._notify()
        elif owned - self._target:
            self._rejoin_reason = "partitions were let go of, so that others may have them"
            self._ownership.tell(RebalanceKind.REVOKED, owned - self._target)
        else:
            self._target_is_told = True
            self._ownership.tell(RebalanceKind.ASSIGNED, self._target - owned)

    def _want_rejoin(self, reason: str, now_s: float) -> None:
        """Join again as soon as the step that is under way is done."""
        self._rejoin_reason = reason
        if self._step is Step.STABLE:
            self._prepare(now_s)

    def _end_attempt(self) -> None:
        self._join.stop()
        self._join.lead = None
        self._heartbeats.stop()
        self._deal_anew_s = None

    def _end_membership(self) -> None:
        self._end_attempt()
        self._member.forget_membership()
        self._step = Step.AWAY

    def _farewell(self, reason: str) -> Message | None:
        # Static members do not leave: they may come back within their session.
        has_id = self._member.member_id != "" and not self._member.is_static
        return self._member.leave_request(reason) if has_id else None

    # -- how a join ended ------------------------------------------------------------------------

    def on_assigned(self, assignment: MemberAssignment, now_s: float) -> None:
        self._failure_count = 0
        self._heartbeats.start(now_s)
        if self._join.lead is not None and self._join.lead.has_left_some:
            # By then whoever has them has let go, was shut out, or is back without them.
            self._deal_anew_s = now_s + self._member.session_timeout_ms / 1000
        # The leader may not know that the subscription is another one by now; it will.
        topics = self._topics.names
        self._target = frozenset(each for each in assignment.partitions if each.topic in topics)
        self._target_is_told = False
        if topics != self._joined_topics:
            self._rejoin_reason = "the subscription has changed"
        self._step = Step.SETTLING
        self._go_on_if_handled(now_s)

    def on_refused(self, code: ErrorCode, now_s: float) -> None:
        self._coordinators.note_error(self._coordinator, code)
        reaction = reaction_to(CLASSIC, code)
        if reaction is Reaction.TAKE_MEMBER_ID:
            self._begin_join(now_s)
        elif reaction in _AGAIN:
            # An assignment that was missed is missed for good: join again, whatever was asked.
            self._begin_join(now_s + self._pause_s())
        elif reaction is Reaction.REJOIN:
            self._rejoin_reason = "the group rebalances"
            self._prepare(now_s)
        elif reaction is Reaction.LOSE_GENERATION:
            self._end_attempt()
            self._member.forget_generation()
            self._lose(now_s)
        elif reaction is Reaction.LOSE_MEMBERSHIP:
            self._end_membership()
            self._lose(now_s)
        else:
            self._fail(group_error(code, self._group_id), now_s)

    def on_unreachable(self, error: KafkaError, now_s: float) -> None:
        self._coordinators.forget(self._coordinator)
        if reaction_to(CLASSIC, error.code) in _AGAIN:
            self._begin_join(now_s + self._pause_s())
        else:
            self._fail(group_error(error.code, self._group_id, str(error)), now_s)

    def on_unassignable(self, error: AssignorError, now_s: float) -> None:
        # The others should have a leader that can lead them.
        self._say_farewell("the consumer's assignor failed", now_s)
        self._fail(error, now_s)

    def _on_heartbeat_error(self, code: ErrorCode, now_s: float) -> None:
        reaction = reaction_to(CLASSIC, code)
        if reaction is Reaction.REJOIN:
            if self._step in (Step.STABLE, Step.SETTLING):
                self._want_rejoin("the group rebalances", now_s)
        elif reaction not in _AGAIN:
            # Those are tried again by the heartbeats themselves.
            self.on_refused(code, now_s)
