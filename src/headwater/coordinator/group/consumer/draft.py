"""The changes that an operation makes to a consumer group, as records and on a copy of the group.

An operation takes several steps, each of which must see what those before it did, while the group
itself changes only when the records are replayed. The copy is made when the first change is.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.consumer.assigning.assignment import Assignment
from headwater.coordinator.group.consumer.assigning.regex import SubscriptionRegex
from headwater.coordinator.group.consumer.assigning.topics_hash import topics_hash
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import ConsumerMember
from headwater.coordinator.group.consumer.stored.records import (
    ResolvedRegex,
    current_record,
    group_record,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    regex_record,
    regex_tombstone,
    target_epoch_record,
    target_record,
)
from headwater.coordinator.stored_record import StoredRecord


class GroupDraft:
    def __init__(self, group: ConsumerGroup, records: Iterable[StoredRecord] = ()) -> None:
        """`records` are to be written before those of the draft."""
        #: The group as it is, and as it will be; both to be read only.
        self.original = group
        self.group = group
        self.records = list(records)
        self._is_copied = False

    def _change(self, *records: StoredRecord) -> ConsumerGroup:
        self.records += records
        if not self._is_copied:
            self.group = self.group.copy()
            self._is_copied = True
        return self.group

    # -- members ---------------------------------------------------------------------------------

    def describe_member(self, member: ConsumerMember) -> None:
        """A member is new, or says something else of itself than before."""
        self._change(member_record(self.group.group_id, member)).put_member(member)

    def place_member(self, member: ConsumerMember) -> None:
        """A member has moved on in its reconciliation."""
        self._change(current_record(self.group.group_id, member)).put_member(member)

    def conclude(self, member: ConsumerMember) -> None:
        """The last step places a member; nobody looks at the draft any more, so none is made."""
        self.records.append(current_record(self.group.group_id, member))

    def replace_member(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """A static member comes back under another id, and takes what its old self had."""
        target = self.group.target(old.member_id)
        self.remove_member(old.member_id)
        self.describe_member(new)
        self.put_target(new.member_id, target)
        self.place_member(new)

    def remove_member(self, member_id: str) -> None:
        group = self._change(*member_tombstones(self.group.group_id, member_id))
        group.targets.pop(member_id, None)
        group.remove_member(member_id)

    # -- the group -------------------------------------------------------------------------------

    def begin_at(self, epoch: int, metadata_hash: int) -> None:
        """The group comes from the classic protocol, and goes on counting."""
        group = self._change(group_record(self.group.group_id, epoch, metadata_hash))
        group.epoch, group.metadata_hash = epoch, metadata_hash

    def raise_epoch(self, image: ClusterImage) -> None:
        """Ask for another assignment, of the topics as they are now."""
        epoch = self.group.epoch + 1
        new_hash = topics_hash(self.group.subscribed_topics(), image)
        group = self._change(group_record(self.group.group_id, epoch, new_hash))
        group.epoch, group.metadata_hash = epoch, new_hash
        if group.has_partition_metadata:
            self._change(partition_metadata_tombstone(group.group_id))
            group.has_partition_metadata = False

    def put_targets(self, targets: dict[str, Assignment]) -> None:
        """A new target assignment, for the group's epoch; what stays the same is not written."""
        for member_id, target in targets.items():
            if self.group.targets.get(member_id) != target:
                self.put_target(member_id, target)
        epoch = self.group.epoch
        self._change(target_epoch_record(self.group.group_id, epoch)).target_epoch = epoch

    def put_target(self, member_id: str, target: Assignment) -> None:
        record = target_record(self.group.group_id, member_id, target)
        self._change(record).targets[member_id] = target

    # -- regular expressions ---------------------------------------------------------------------

    def resolve_regex(self, regex: str, image: ClusterImage, now_ms: int) -> None:
        """Find the topics of a pattern that the group has not used before."""
        self._put_regex(regex, SubscriptionRegex(regex).topics_of(image), now_ms)

    def refresh_regexes(self, image: ClusterImage, now_ms: int, touched: Iterable[str]) -> None:
        """Look again at topics that may have come or gone."""
        for regex, resolved in list(self.group.regexes.items()):
            rest = resolved.topics.difference(touched)
            present = (name for name in touched if name in image.topics)
            topics = rest | SubscriptionRegex(regex).matching(present)
            if topics != resolved.topics:
                self._put_regex(regex, topics, now_ms)

    def forget_unused_regexes(self) -> None:
        used = {member.regex for member in self.group.members.values()}
        for regex in sorted(self.group.regexes.keys() - used):
            self._change(regex_tombstone(self.group.group_id, regex)).regexes.pop(regex)

    def _put_regex(self, regex: str, topics: frozenset[str], now_ms: int) -> None:
        resolved = ResolvedRegex(topics, now_ms)
        record = regex_record(self.group.group_id, regex, resolved)
        self._change(record).regexes[regex] = resolved
