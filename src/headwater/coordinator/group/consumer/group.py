"""A group of the consumer protocol: its members, its target assignment, and who has what now.

Everything here is told by records. `put_member` and its kin are called by replay, and by operations
on a copy of the group, on which they try out what the records that they are about to write will do.

The group's epoch grows with every change that asks for another assignment. The target's epoch is
that of the group for which the target was computed. Members follow it one by one.
"""

from __future__ import annotations

import uuid
from collections import Counter
from itertools import chain
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.assigning.assignment import NOTHING, Assignment, pairs
from headwater.coordinator.group.consumer.member import ConsumerMember, MemberState
from headwater.coordinator.group.consumer.stored.records import (
    ResolvedRegex,
    group_tombstone,
    member_tombstones,
    partition_metadata_tombstone,
    regex_tombstone,
    target_epoch_tombstone,
)
from headwater.coordinator.group.group import Group, GroupKind
from headwater.coordinator.stored_record import StoredRecord

#: The first version of OffsetCommit that members of this protocol may use.
_COMMIT_VERSION_MIN: Final = 9
_NO_MEMBER: Final = ""


class ConsumerGroup(Group):
    kind = GroupKind.CONSUMER

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.epoch = 0
        #: Of the topics that the group reads, as they were when the epoch was last raised.
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.target_epoch = 0
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        #: An earlier release described the group's topics in a record, which is to be deleted.
        self.has_partition_metadata = False
        #: Soft: the hash was compared with the cluster's topics since the group was loaded.
        self.is_metadata_checked = False
        #: Members by the partitions that they have or still have to give up.
        self._owners: dict[tuple[uuid.UUID, int], str] = {}
        self._static_members: dict[str, str] = {}

    # -- what replay changes ---------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        """Add a member, or replace its earlier state."""
        self._forget(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._static_members[member.instance_id] = member.member_id
        # Reconciliation never gives a partition to two members, but the assignor of a classic group
        # may have done so; then the last one counts.
        for pair in chain(pairs(member.assigned), pairs(member.revoking)):
            self._owners[pair] = member.member_id

    def remove_member(self, member_id: str) -> None:
        self._forget(member_id)
        self.members.pop(member_id, None)

    def _forget(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        for pair in chain(pairs(member.assigned), pairs(member.revoking)):
            if self._owners.get(pair) == member_id:
                del self._owners[pair]
        # A newer member may have taken over the instance id.
        if member.instance_id and self._static_members.get(member.instance_id) == member_id:
            del self._static_members[member.instance_id]

    def copy(self) -> ConsumerGroup:
        """The same state, to try changes on."""
        other = ConsumerGroup(self.group_id)
        other.epoch, other.metadata_hash = self.epoch, self.metadata_hash
        other.members = dict(self.members)
        other.target_epoch, other.targets = self.target_epoch, dict(self.targets)
        other.regexes = dict(self.regexes)
        other.has_partition_metadata = self.has_partition_metadata
        other.is_metadata_checked = self.is_metadata_checked
        other._owners = dict(self._owners)
        other._static_members = dict(self._static_members)
        return other

    # -- looking ---------------------------------------------------------------------------------

    def member(self, member_id: str) -> ConsumerMember:
        """The member; raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self._static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def owner(self, topic_id: uuid.UUID, partition: int) -> str | None:
        """Who has the partition, or has not given it up yet."""
        return self._owners.get((topic_id, partition))

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether something that the member shall have still is with somebody else."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            self.owner(*pair) not in (None, member.member_id)
            for pair in pairs(self.target(member.member_id))
        )

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """All topics that a member is subscribed to, by name or by pattern."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def subscribed_topics(self) -> frozenset[str]:
        """All topics that some member is subscribed to."""
        return frozenset().union(*map(self.topics_of, self.members.values()))

    def preferred_assignor(self, supported: tuple[str, ...]) -> str:
        """What most members ask for; the first of the supported ones if nobody asks."""
        asked = (member.assignor for member in self.members.values())
        votes = Counter(name for name in asked if name in supported)
        return max(supported, key=lambda name: (votes[name], -supported.index(name)))

    @property
    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.classic is not None]

    # -- Group -----------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> None:
        if generation < 0 and self.is_empty:
            return  # An administrator moves the offsets of a group that nobody uses.
        is_anonymous = generation < 0 and member_id == _NO_MEMBER and group_instance_id is None
        if is_transactional and is_anonymous:
            return  # Producers of older releases do not tell in whose name they commit.
        member = self.member(member_id)
        if not is_transactional and member.classic is None and api_version < _COMMIT_VERSION_MIN:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of a consumer group need OffsetCommit v{_COMMIT_VERSION_MIN} or later.",
            )
        self._check_epoch(member, generation)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        self._check_epoch(self.member(member_id or _NO_MEMBER), member_epoch)

    def _check_epoch(self, member: ConsumerMember, epoch: int) -> None:
        if epoch != member.epoch:
            is_classic = member.classic is not None
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH,
                f"Member {member.member_id} is in epoch {member.epoch}, not in {epoch}.",
            )

    def check_deletion(self) -> None:
        if not self.is_empty:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"The group {self.group_id} still has members."
            )

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def offsets_unused_since_ms(self, topic: str, commit_ms: int) -> int | None:
        return None if self.is_subscribed_to(topic) else commit_ms

    def tombstones(self) -> list[StoredRecord]:
        records = []
        for member_id in self.members:
            records += member_tombstones(self.group_id, member_id)
        records += [regex_tombstone(self.group_id, regex) for regex in self.regexes]
        records.append(target_epoch_tombstone(self.group_id))
        if self.has_partition_metadata:
            records.append(partition_metadata_tombstone(self.group_id))
        records.append(group_tombstone(self.group_id))
        return records

    def stored_state(self) -> object:
        return (
            self.kind,
            self.epoch,
            self.metadata_hash,
            self.members,
            self.target_epoch,
            self.targets,
            self.regexes,
            self.has_partition_metadata,
            self._owners,
            self._static_members,
        )
