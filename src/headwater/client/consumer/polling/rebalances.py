"""What a consumer does about the events of its group, step by step with the polling thread.

begin (loop)      before partitions are let go of, what was consumed is committed, if that
                  happens automatically; partitions that are added are taken over
listener          the user's, in the polling thread
end (loop)        partitions that were let go of are forgotten, and the membership goes on
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from headwater.base.checks import require
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import GroupCommits
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.membership.membership import (
    Membership,
    RebalanceEvent,
    RebalanceKind,
)
from headwater.client.consumer.metrics import ConsumerMetrics


class Rebalances:
    def __init__(
        self,
        subscription: SubscriptionState,
        *,
        membership: Membership | None,
        commits: GroupCommits | None,
        metrics: ConsumerMetrics,
        commit_timeout_s: float,
        consumed: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]],
        changed: Callable[[Collection[TopicPartition]], None],
        now_s: Callable[[], float],
    ) -> None:
        self._subscription = subscription
        self._membership = membership
        self._commits = commits
        self._metrics = metrics
        self._commit_timeout_s = commit_timeout_s
        self._consumed = consumed
        self._changed = changed
        self._now_s = now_s

    @property
    def event(self) -> RebalanceEvent | None:
        """What is to be gone through now; the polling thread may ask."""
        return None if self._membership is None else self._membership.event

    async def begin(self, event: RebalanceEvent) -> None:
        if event.kind is RebalanceKind.REVOKED:
            await self.commit_consumed(self._commit_timeout_s)
        elif event.kind is RebalanceKind.ASSIGNED:
            self._subscription.add(sorted(event.partitions))
            self._changed(())

    def end(self, event: RebalanceEvent) -> None:
        membership = require(self._membership, "a rebalance without a group")
        if event.kind is RebalanceKind.ASSIGNED:
            self._metrics.rebalance_count += 1
        else:
            self._subscription.remove(event.partitions)
        membership.event_handled(list(self._subscription.partitions), self._now_s())
        self._changed(() if event.kind is RebalanceKind.ASSIGNED else event.partitions)

    async def commit_consumed(self, timeout_s: float) -> None:
        """Before partitions go, and before the end: commit if that happens automatically.

        Commits that are under way are waited for in any case.
        """
        if self._commits is None:
            return
        if self._commits.is_automatic:
            await self._commits.commit_before_rebalance(self._consumed(), timeout_s)
        await self._commits.settle(timeout_s)

    def farewell(self) -> RebalanceEvent | None:
        """What the listener hears when all is let go of by the user's own wish."""
        owned = frozenset(self._subscription.partitions)
        if not owned or not self._subscription.is_subscribed:
            return None
        return RebalanceEvent(RebalanceKind.REVOKED, owned)


def tell_listener(listener: RebalanceListener, consumer: Any, event: RebalanceEvent) -> Any:
    """Call the method for the event; what it returns may have to be awaited."""
    match event.kind:
        case RebalanceKind.REVOKED:
            return listener.on_partitions_revoked(consumer, event.partitions)
        case RebalanceKind.LOST:
            return listener.on_partitions_lost(consumer, event.partitions)
        case RebalanceKind.ASSIGNED:
            return listener.on_partitions_assigned(consumer, event.partitions)
