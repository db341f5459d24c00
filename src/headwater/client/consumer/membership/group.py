"""What a consumer has for its group: a membership of either protocol, and who commits its offsets.

All of it is None, and nothing happens, for a consumer without `group.id`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.commits import OffsetCommits
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.errors import NoGroupError
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.membership.classic_membership import ClassicMembership
from headwater.client.consumer.membership.consumer_membership import ConsumerMembership
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.options import ConsumerOptions
from headwater.client.errors import DeadlineError
from headwater.client.machines.ask import Machine
from headwater.client.settings.consumer_settings import CONSUMER


class GroupParts:
    def __init__(
        self,
        options: ConsumerOptions,
        *,
        subscription: SubscriptionState,
        coordinators: CoordinatorCache,
        metadata: ClusterMetadata,
        policy: RetryPolicy,
        generator: random.Random,
        refresh: Callable[[Collection[str]], None],
        notify: Callable[[], None],
    ) -> None:
        self._subscription = subscription
        self._loop = asyncio.get_running_loop()
        self._group_id = options.group_id
        self.membership: ClassicMembership | ConsumerMembership | None = None
        self.offset_commits: OffsetCommits | None = None
        self._last_identity: GroupIdentity | None = None
        if options.group_id is None:
            return
        values = options.values
        if values.text("group.protocol") == CONSUMER:
            self.membership = ConsumerMembership(
                values,
                coordinators=coordinators,
                metadata=metadata,
                policy=policy,
                generator=generator,
                refresh=refresh,
                notify=notify,
            )
        else:
            self.membership = ClassicMembership(
                values,
                coordinators=coordinators,
                metadata=metadata,
                assignors=options.assignors,
                policy=policy,
                generator=generator,
                refresh=refresh,
                notify=notify,
            )
        self.offset_commits = OffsetCommits(
            values,
            coordinators=coordinators,
            metadata=metadata,
            identity=self._committer,
            policy=policy,
            generator=generator,
        )

    def machines(self) -> list[Machine]:
        return [part for part in (self.offset_commits, self.membership) if part is not None]

    def topics(self) -> frozenset[str]:
        """Topics of other members, which this one has to know while it leads the group."""
        return frozenset() if self.membership is None else self.membership.group_topics

    def identity(self) -> GroupIdentity:
        """Who commits in a transaction; raises if there is no group.

        Who is a member no longer stays who it was. A commit in a transaction without a member's
        name is believed by every coordinator, so one that came too late would undo what those who
        have the partitions now have done.
        """
        if self._group_id is None:
            raise NoGroupError("This consumer belongs to no group: set group.id.")
        if self.membership is None or not self._subscription.is_subscribed:
            return GroupIdentity(self._group_id)
        identity = self.membership.identity
        if identity.generation_id < 0 and self._last_identity is not None:
            return self._last_identity
        return identity

    def _committer(self) -> GroupIdentity:
        if self.membership is not None and self._subscription.is_subscribed:
            return self.membership.committer()
        return self.identity()

    def note_identity(self) -> None:
        """The assignment has changed: remember as whom, should the membership be lost."""
        if self.membership is not None and self.membership.identity.generation_id >= 0:
            self._last_identity = self.membership.identity

    def enforce_rebalance(self, reason: str, now_s: float) -> None:
        if self.membership is not None:
            self.membership.enforce_rebalance(reason, now_s)

    async def committed(
        self, partitions: Collection[TopicPartition], wake: Callable[[], None], timeout_s: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        if self.offset_commits is None or not partitions:
            return {}
        completion = self.offset_commits.fetch(partitions, self._loop.time())
        wake()
        try:
            async with asyncio.timeout(timeout_s):
                return await completion.wait()
        except TimeoutError:
            raise DeadlineError(
                f"Committed offsets were not found within {timeout_s:g} s."
            ) from None

    async def leave(self, wake: Callable[[], None], now_s: float, timeout_s: float) -> None:
        """Leave the group if the consumer is a member; not waiting for longer than that."""
        if self.membership is None or not self._subscription.is_subscribed:
            return
        completion = self.membership.leave(now_s)
        wake()
        try:
            async with asyncio.timeout(timeout_s):
                await completion.wait()
        except TimeoutError:
            return
