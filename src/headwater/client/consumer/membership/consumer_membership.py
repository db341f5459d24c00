"""A consumer as a member of a group of the consumer protocol (KIP-848).

There is one request, the heartbeat. It says who the member is and, when that has changed, what it
subscribes to and what it has; the answer says when to send the next, and what the member shall
have. Nobody waits for anybody: the member lets go of what it shall not have any more, says so, and
takes over what it shall have, while it goes on with the rest. The coordinator gives a partition to
another member only when its former owner has said that it let go of it.

    AWAY -> PREPARING -> JOINING (epoch 0) -> MEMBER (the coordinator's epochs) -> PREPARING ...

A member that was cut off too long is fenced: all that it had is lost, and it joins as a new one.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition, new_topic_id, topic_id_to_text
from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.membership.consumer_heartbeats import ConsumerHeartbeats
from headwater.client.consumer.membership.errors import (
    CONSUMER,
    Reaction,
    group_error,
    no_consumer_protocol,
    reaction_to,
)
from headwater.client.consumer.membership.membership import (
    GroupIdentity,
    Notify,
    RebalanceKind,
    Subscription,
)
from headwater.client.consumer.membership.state import MembershipState, Refresh, earliest_s
from headwater.client.machines.ask import Ask
from headwater.client.machines.completion import Completion
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.schema import Message

_LEAVE: Final = -1
#: A static member that comes back with its instance id gets what it had.
_LEAVE_FOR_A_WHILE: Final = -2

#: A partition as the coordinator calls it: by the id of its topic.
IdPartition = tuple[uuid.UUID, int]


class Step(Enum):
    AWAY = auto()
    #: It wants to join, and waits until the polling thread knows what it has lost.
    PREPARING = auto()
    JOINING = auto()
    MEMBER = auto()


class ConsumerMembership(MembershipState):
    """A `Membership`; see there. `refresh` asks for metadata, of these topics too."""

    def __init__(
        self,
        values: SettingValues,
        *,
        coordinators: CoordinatorCache,
        metadata: ClusterMetadata,
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
            # Behind what is under way: a heartbeat that came after the farewell would join again.
            farewell_lane=Lane.COORDINATION,
        )
        self._instance_id = values.optional_text("group.instance.id")
        self._heartbeats = ConsumerHeartbeats(
            group_id=self._group_id,
            # The member makes its id itself, so that a lost answer does not make two members.
            member_id=topic_id_to_text(
                new_topic_id(lambda: uuid.UUID(int=generator.getrandbits(128)))
            ),
            instance_id=self._instance_id,
            rack_id=values.text("client.rack") or None,
            rebalance_timeout_ms=values.integer("max.poll.interval.ms"),
            server_assignor=values.optional_text("group.remote.assignor"),
            coordinator=self._coordinator,
            timeout_s=self._request_timeout_s,
            on_answer=self._answered,
            on_failure=self._failed,
        )
        self._step = Step.AWAY
        self._last_farewell: Completion[None] | None = None
        #: Whether the coordinator may count it as a member, with its instance id.
        self._may_have_joined = False
        #: The topic ids of what the consumer has: a topic may be deleted and made again.
        self._topic_ids: dict[str, uuid.UUID] = {}
        self._target: frozenset[IdPartition] | None = None
        self._target_is_told = False
        #: When to ask for metadata again, while the target has topics of which nothing is known.
        self._refresh_due_s: float | None = None

    # -- what the core looks at ------------------------------------------------------------------

    @property
    def identity(self) -> GroupIdentity:
        epoch = self._heartbeats.epoch
        return GroupIdentity(
            self._group_id,
            epoch if self._step is Step.MEMBER else -1,
            self._heartbeats.member_id,
            self._instance_id,
        )

    @property
    def is_stable(self) -> bool:
        is_settled = self.event is None and self._target_is_told
        return self._step is Step.MEMBER and is_settled and not self._is_lost

    @property
    def group_topics(self) -> frozenset[str]:
        """Topics of which metadata are needed beside the subscribed ones."""
        return frozenset(self._topic_ids)

    # -- what the core says ----------------------------------------------------------------------

    def subscribe(self, subscription: Subscription, now_s: float) -> None:
        if not subscription.topics and subscription.pattern is None:
            self.leave(now_s)
            return
        self._heartbeats.say_subscription(subscription, now_s)
        if self._step is Step.AWAY:
            self._restart(now_s)

    def metadata_changed(self, now_s: float) -> None:
        self._go_on_if_handled(now_s)

    def event_handled(self, owned: Iterable[TopicPartition], now_s: float) -> None:
        owned = frozenset(owned)
        topics = {topic for topic, _ in owned}
        self._topic_ids = {
            name: topic_id for name, topic_id in self._topic_ids.items() if name in topics
        }
        self._say_owned(owned, now_s)
        super().event_handled(owned, now_s)

    def enforce_rebalance(self, reason: str, now_s: float) -> None:
        """The coordinator decides when to rebalance: there is nothing that a member could do."""

    def leave(self, now_s: float) -> Completion[None]:
        completion = super().leave(now_s)
        self._topic_ids = {}
        return completion

    # -- the machine -----------------------------------------------------------------------------

    def asks(self, now_s: float) -> list[Ask]:
        self._leave_if_overdue(now_s)
        self._go_on_if_handled(now_s)
        return [*self._leaving.asks(now_s), *self._heartbeats.asks(now_s)]

    def wake_at_s(self, now_s: float) -> float | None:
        return earliest_s(
            self._heartbeats.wake_at_s(),
            self._leaving.wake_at_s(),
            self._poll_due_s(),
            self._refresh_due_s if self.event is None else None,
        )

    def _is_watched(self) -> bool:
        return self._step is Step.MEMBER and not self._poll_limit.is_overdue

    def _go_on(self, now_s: float) -> None:
        if self._step is Step.PREPARING:
            has_left = self._last_farewell is None or self._last_farewell.is_done
            if has_left and not self._poll_limit.is_overdue:
                self._step = Step.JOINING
                self._topic_ids = {}
                self._heartbeats.join(now_s)
        elif self._step is Step.MEMBER and self._target is not None:
            self._reconcile(self._target, now_s)

    def _reconcile(self, target: frozenset[IdPartition], now_s: float) -> None:
        """Let go of what is not assigned any more, then take over what is new."""
        owned = {
            (self._topic_ids[each.topic], each.partition): each for each in self._ownership.owned
        }
        names = {topic_id: self._metadata.name_of(topic_id) for topic_id, _ in target}
        # Topics of which nothing is known yet are taken over as soon as that has changed.
        are_known = None not in names.values()
        if are_known:
            self._refresh_due_s = None
        elif self._refresh_due_s is None or now_s >= self._refresh_due_s:
            self._refresh_due_s = now_s + self._policy.backoff_max_ms / 1000
            self._refresh(())
        added = {
            TopicPartition(name, number): topic_id
            for topic_id, number in target - owned.keys()
            if (name := names[topic_id]) is not None
        }
        revoked = owned.keys() - target
        if revoked:
            self._target_is_told = False
            self._ownership.tell(RebalanceKind.REVOKED, (owned[each] for each in revoked))
        elif added or (are_known and not self._target_is_told):
            self._target_is_told = True
            self._topic_ids |= {each.topic: topic_id for each, topic_id in added.items()}
            # The consumer will have them, whatever the coordinator decides until it has polled.
            self._say_owned(self._ownership.owned | added.keys(), now_s)
            self._ownership.tell(RebalanceKind.ASSIGNED, added)

    def _say_owned(self, owned: Iterable[TopicPartition], now_s: float) -> None:
        by_id = frozenset((self._topic_ids[name], number) for name, number in owned)
        self._heartbeats.say_owned(by_id, now_s)

    def _prepare(self, now_s: float) -> None:
        self._step = Step.PREPARING
        self._go_on_if_handled(now_s)

    def _end_membership(self) -> None:
        self._heartbeats.stop()
        self._target = None
        self._target_is_told = False
        self._refresh_due_s = None
        self._step = Step.AWAY

    def _farewell(self, reason: str) -> Message | None:
        if self._step not in (Step.JOINING, Step.MEMBER):
            return None
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._heartbeats.member_id,
            member_epoch=_LEAVE if self._instance_id is None else _LEAVE_FOR_A_WHILE,
            instance_id=self._instance_id,
        )

    def _say_farewell(self, reason: str, now_s: float) -> Completion[None]:
        self._last_farewell = super()._say_farewell(reason, now_s)
        return self._last_farewell

    # -- answers ---------------------------------------------------------------------------------

    def _answered(self, answer: ConsumerGroupHeartbeatResponse, now_s: float) -> None:
        code = ErrorCode.from_wire(answer.error_code)
        if code is not ErrorCode.NONE:
            self._coordinators.note_error(self._coordinator, code)
            self._on_error(code, answer.error_message, now_s)
            return
        self._failure_count = 0
        self._step = Step.MEMBER
        if answer.assignment is not None:
            target = frozenset(
                (entry.topic_id, number)
                for entry in answer.assignment.topic_partitions
                for number in entry.partitions
            )
            self._target_is_told &= target == self._target
            self._target = target
        self._go_on_if_handled(now_s)

    def _failed(self, error: KafkaError, now_s: float) -> None:
        self._coordinators.forget(self._coordinator)
        self._may_have_joined |= self._step is Step.JOINING
        self._on_error(error.code, str(error), now_s)

    def _on_error(self, code: ErrorCode, message: str | None, now_s: float) -> None:
        reaction = reaction_to(CONSUMER, code)
        if reaction in (Reaction.RETRY, Reaction.FIND_COORDINATOR):
            self._heartbeats.say_all_again(now_s + self._pause_s())
        elif reaction is Reaction.LOSE_MEMBERSHIP:
            self._may_have_joined = True
            self._end_membership()
            self._lose(now_s)
        elif reaction is Reaction.TELL:
            self._failure = group_error(code, self._group_id, message)
            self._heartbeats.say_all_again(now_s + self._pause_s())
            self._notify()
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID and self._may_have_joined:
            # It may have that id itself, since before it was fenced, or since a join whose answer
            # it did not hear: it gives it back, and joins with it again.
            self._may_have_joined = False
            self._say_farewell("the member's epoch was lost", now_s)
            self._end_membership()
            self._prepare(now_s)
        elif code is ErrorCode.UNSUPPORTED_VERSION:
            self._fail(no_consumer_protocol(self._group_id), now_s)
        else:
            self._fail(group_error(code, self._group_id, message), now_s)
