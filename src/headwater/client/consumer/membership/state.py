"""What memberships of both protocols have in common: events, failures, and whether the user polls.

A protocol's own class is built on it and says what is done next, in `_go_on`, whenever the polling
thread has nothing to handle any more.
"""

from __future__ import annotations

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable

from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.errors import not_a_member
from headwater.client.consumer.membership.errors import FINAL
from headwater.client.consumer.membership.leaving import GroupLeaving
from headwater.client.consumer.membership.membership import (
    GroupIdentity,
    Notify,
    RebalanceEvent,
    RebalanceKind,
    Subscription,
)
from headwater.client.consumer.membership.poll_limit import PollLimit
from headwater.client.machines.ask import CoordinatorOf
from headwater.client.machines.completion import Completion
from headwater.wire.schema import Message

_logger = logging.getLogger(__name__)

#: Asks for metadata, of these topics too.
Refresh = Callable[[Collection[str]], None]


class MembershipState(ABC):
    """`_has_failed` and the rest of the state are changed by the protocol's class only."""

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
        farewell_lane: Lane,
    ) -> None:
        self._group_id = values.text("group.id")
        self._coordinator = CoordinatorOf(CoordinatorKind.GROUP, self._group_id)
        self._coordinators = coordinators
        self._metadata = metadata
        self._policy = policy
        self._generator = generator
        self._refresh = refresh
        self._notify = notify
        self._request_timeout_s = values.integer("request.timeout.ms") / 1000
        self._ownership = Ownership(notify)
        self._poll_limit = PollLimit(values.integer("max.poll.interval.ms") / 1000)
        self._leaving = GroupLeaving(
            self._coordinator,
            coordinators,
            policy,
            generator,
            timeout_s=self._request_timeout_s,
            lane=farewell_lane,
        )
        #: Attempts since one succeeded.
        self._failure_count = 0
        #: Whether others may have by now what this consumer has.
        self._is_lost = False
        self._failure: KafkaError | None = None
        #: What cannot pass has happened; another attempt is made when the user polls again.
        self._has_failed = False
        self._has_failed_for_good = False

    # -- what the core looks at ------------------------------------------------------------------

    @property
    @abstractmethod
    def identity(self) -> GroupIdentity: ...

    @property
    def event(self) -> RebalanceEvent | None:
        return self._ownership.event

    @property
    def failure(self) -> KafkaError | None:
        return self._failure

    def take_failure(self) -> KafkaError | None:
        failure, self._failure = self._failure, None
        return failure

    def committer(self) -> GroupIdentity:
        """Who commits; raises `CommitFailedError` if it is not a member, or not any more."""
        if self.identity.generation_id < 0:
            raise not_a_member(self._group_id)
        return self.identity

    # -- what the core says ----------------------------------------------------------------------

    def event_handled(self, owned: Iterable[TopicPartition], now_s: float) -> None:
        self._ownership.handled(owned)
        self._go_on_if_handled(now_s)

    def polled(self, now_s: float) -> None:
        self._poll_limit.polled(now_s)
        is_heard = self._failure is None and not self._has_failed_for_good
        if self._has_failed and is_heard and self._ownership.event is None:
            self._has_failed = False
            self._prepare(now_s)
        self._go_on_if_handled(now_s)

    def leave(self, now_s: float) -> Completion[None]:
        completion = self._say_farewell("the consumer is closed, or has unsubscribed", now_s)
        self._end_membership()
        self._ownership.clear()
        self._is_lost = False
        self._has_failed = False
        return completion

    @abstractmethod
    def subscribe(self, subscription: Subscription, now_s: float) -> None: ...

    # -- what each protocol has its own way for --------------------------------------------------

    @abstractmethod
    def _go_on(self, now_s: float) -> None:
        """Take the next step; the polling thread has nothing to handle."""

    @abstractmethod
    def _prepare(self, now_s: float) -> None:
        """Join, or join again, as soon as nothing has to be handled before."""

    @abstractmethod
    def _end_membership(self) -> None:
        """Forget everything about it; what is under way does not matter any more."""

    @abstractmethod
    def _farewell(self, reason: str) -> Message | None:
        """The request that ends the membership, if there is one to end."""

    @abstractmethod
    def _is_watched(self) -> bool:
        """Whether the user must poll in time."""

    # -- shared steps ----------------------------------------------------------------------------

    def _go_on_if_handled(self, now_s: float) -> None:
        if self._ownership.event is not None:
            return
        if self._is_lost:
            self._is_lost = False
            if self._ownership.owned:
                self._ownership.tell(RebalanceKind.LOST, self._ownership.owned)
                return
        if not self._has_failed:
            self._go_on(now_s)

    def _lose(self, now_s: float) -> None:
        """Others may have what this member had; it joins anew when the user knows that."""
        self._is_lost = True
        self._prepare(now_s)

    def _fail(self, failure: KafkaError, now_s: float) -> None:
        self._end_membership()
        self._is_lost = True
        self._failure = failure
        self._has_failed = True
        self._has_failed_for_good = failure.code in FINAL
        self._go_on_if_handled(now_s)
        self._notify()

    def _restart(self, now_s: float) -> None:
        """A subscription after none, or after a failure."""
        self._has_failed = False
        self._has_failed_for_good = False
        self._poll_limit.start_anew(now_s)
        self._prepare(now_s)

    def _say_farewell(self, reason: str, now_s: float) -> Completion[None]:
        request = self._farewell(reason)
        if request is not None:
            return self._leaving.begin(request, now_s)
        completion: Completion[None] = Completion()
        completion.succeed(None)
        return completion

    def _leave_if_overdue(self, now_s: float) -> None:
        if self._is_watched() and self._poll_limit.find_overdue(now_s):
            _logger.warning("Group %r: %s.", self._group_id, self._poll_limit.reason)
            self._say_farewell(self._poll_limit.reason, now_s)
            self._end_membership()
            self._lose(now_s)

    def _poll_due_s(self) -> float | None:
        return self._poll_limit.due_s if self._is_watched() else None

    def _pause_s(self) -> float:
        """How long to wait after one more failure."""
        self._failure_count += 1
        return self._policy.pause_s(self._failure_count, self._generator)


def earliest_s(*times_s: float | None) -> float | None:
    """The first of the moments that there are."""
    return min((time_s for time_s in times_s if time_s is not None), default=None)


# One event at a time. It does not change once it is told, because the polling thread may be in
# the middle of handling it; whatever has happened meanwhile is told after it.
class Ownership:
    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._event: RebalanceEvent | None = None
        #: As the consumer said when it had handled the last event.
        self.owned: frozenset[TopicPartition] = frozenset()

    @property
    def event(self) -> RebalanceEvent | None:
        return self._event

    def tell(self, kind: RebalanceKind, partitions: Iterable[TopicPartition]) -> None:
        check(self._event is None, "an event was told before the last one was handled")
        self._event = RebalanceEvent(kind, frozenset(partitions))
        self._notify()

    def handled(self, owned: Iterable[TopicPartition]) -> None:
        check(self._event is not None, "an event was handled that nobody had told")
        self._event = None
        self.owned = frozenset(owned)

    def clear(self) -> None:
        """The consumer has given everything up by itself."""
        self._event = None
        self.owned = frozenset()
