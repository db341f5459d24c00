"""The steps by which a consumer group changes: epochs rise, targets are computed, members follow.

Whoever joins, leaves or changes its subscription raises the group's epoch. The next heartbeat of
any member computes the target for that epoch; from then on each member is reconciled to it by its
own heartbeats. There is no moment at which all members have to stop.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.cluster.image.change import ImageChange
from headwater.coordinator.group.consumer.assigning.assignment import Assignment
from headwater.coordinator.group.consumer.assigning.reconciliation import reconcile
from headwater.coordinator.group.consumer.assigning.target import compute_targets
from headwater.coordinator.group.consumer.assigning.topics_hash import topics_hash
from headwater.coordinator.group.consumer.draft import GroupDraft
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import ConsumerMember, MemberState
from headwater.coordinator.group.consumer.timers import ConsumerTimers, Deadline
from headwater.coordinator.group.environment import GroupEnvironment


class ConsumerRebalance:
    def __init__(self, environment: GroupEnvironment, timers: ConsumerTimers) -> None:
        self._environment = environment
        self._timers = timers

    def advance(
        self,
        draft: GroupDraft,
        before: ConsumerMember,
        member: ConsumerMember,
        owned: Assignment | None,
        now_ms: int,
    ) -> ConsumerMember:
        """Take in what a member says of itself, and bring it on its way; returns it as it is then.

        `before` is the member as it was; a new one is not in the draft's group.
        """
        if member is not before or member.member_id not in draft.group.members:
            self._update(draft, before, member, now_ms)
        self.check_metadata(draft, now_ms)
        if draft.group.epoch > draft.group.target_epoch:
            image = self._environment.image()
            draft.put_targets(compute_targets(draft.group, image, self._environment.settings))
        return self._reconcile(draft, member, owned)

    def _update(
        self, draft: GroupDraft, before: ConsumerMember, member: ConsumerMember, now_ms: int
    ) -> None:
        is_known = member.member_id in draft.group.members
        image = self._environment.image()
        is_new_regex = bool(member.regex) and member.regex not in draft.group.regexes
        if is_new_regex:
            draft.resolve_regex(str(member.regex), image, now_ms)
        if not (is_known and member.describes_same(before)):
            draft.describe_member(member)
        has_changed = member.topics != before.topics or member.regex != before.regex
        if before.regex and before.regex != member.regex:
            draft.forget_unused_regexes()
        # A new group leaves epoch 0 even if nobody wants anything yet.
        if has_changed or draft.group.epoch == 0:
            reason = "subscribes to other topics" if is_known else "joins"
            self._raise_epoch(draft, f"{member.member_id} {reason}", now_ms)

    def _raise_epoch(self, draft: GroupDraft, reason: str, now_ms: int) -> None:
        self._environment.log.rebalances(draft.group.group_id, draft.group.epoch, reason, now_ms)
        draft.raise_epoch(self._environment.image())

    def _reconcile(
        self, draft: GroupDraft, member: ConsumerMember, owned: Assignment | None
    ) -> ConsumerMember:
        group = draft.group
        placed = reconcile(
            member, group.target_epoch, group.target(member.member_id), group.owner, owned
        )
        if placed is member:
            return member
        draft.conclude(placed)
        if member.classic is None:
            self.watch_revocation(group.group_id, placed)
        return placed

    def watch_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """Limit the time that a member takes to give partitions up."""
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._timers.start(Deadline.REVOCATION, group_id, member, member.rebalance_timeout_ms)
        else:
            self._timers.cancel(Deadline.REVOCATION, group_id, member.member_id)

    def remove(self, draft: GroupDraft, members: Iterable[ConsumerMember]) -> None:
        """Members leave or are fenced."""
        for member in members:
            draft.remove_member(member.member_id)
            # Its session goes on, in case that it cannot be removed now.
            self._timers.cancel_steps(draft.group.group_id, member.member_id)
        draft.forget_unused_regexes()

    def share_anew(self, draft: GroupDraft, now_ms: int) -> None:
        """The members that are left will share what others had."""
        self._raise_epoch(draft, "members are gone", now_ms)

    def check_metadata(self, draft: GroupDraft, now_ms: int) -> None:
        """Compare the group with the cluster if nobody did since it was loaded."""
        group = draft.group
        if group.is_metadata_checked:
            return
        image = self._environment.image()
        seen = frozenset(image.topics).union(*(each.topics for each in group.regexes.values()))
        self._refresh(draft, seen, now_ms)
        if not draft.records:
            # Otherwise it is looked at again: the records may not make it into the topic.
            draft.original.is_metadata_checked = True

    def follow_image(self, group: ConsumerGroup, change: ImageChange, now_ms: int) -> GroupDraft:
        """Raise the group's epoch if topics that it reads have come, grown or gone."""
        draft = GroupDraft(group)
        touched = change.changed_topics.union(topic.name for topic in change.deleted_topics)
        if group.regexes or not touched.isdisjoint(group.subscribed_topics()):
            self._refresh(draft, touched, now_ms)
        return draft

    def _refresh(self, draft: GroupDraft, touched: frozenset[str], now_ms: int) -> None:
        if draft.group.is_empty:
            return
        image = self._environment.image()
        draft.refresh_regexes(image, now_ms, touched)
        if topics_hash(draft.group.subscribed_topics(), image) != draft.group.metadata_hash:
            self._raise_epoch(draft, "topics have changed", now_ms)
