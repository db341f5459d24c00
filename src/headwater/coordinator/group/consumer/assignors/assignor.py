"""What an assignor gets and what it returns.

An assignor is a function without state: the same group always gets the same assignment. It gives
each partition of every topic that has subscribers to exactly one of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from headwater.coordinator.group.consumer.assigning.assignment import Assignment


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as assignors see it."""

    #: The topics that it reads; all of them exist.
    topics: frozenset[uuid.UUID]
    #: Its part of the target assignment so far.
    current: Assignment
    #: Set for static members, which keep their place in the order over restarts.
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What has to be dealt out, and to whom."""

    members: Mapping[str, MemberSpec]
    #: The number of partitions of each topic that somebody reads.
    partition_counts: Mapping[uuid.UUID, int]

    @property
    def ordered_members(self) -> list[str]:
        """Ids of members in the order in which they are served."""
        return sorted(self.members, key=lambda member_id: (self._rank(member_id), member_id))

    def _rank(self, member_id: str) -> tuple[bool, str]:
        instance_id = self.members[member_id].instance_id
        return instance_id is None, instance_id or ""

    def retained(self) -> dict[str, set[tuple[uuid.UUID, int]]]:
        """What members could keep: it exists, they still read it, and nobody before them has it."""
        taken: set[tuple[uuid.UUID, int]] = set()
        kept: dict[str, set[tuple[uuid.UUID, int]]] = {}
        for member_id in self.ordered_members:
            member = self.members[member_id]
            mine = {
                (topic_id, partition)
                for topic_id, partitions in member.current.items()
                if topic_id in member.topics
                for partition in partitions
                if partition < self.partition_counts.get(topic_id, 0)
            }
            mine -= taken
            taken |= mine
            kept[member_id] = mine
        return kept


class Assignor(Protocol):
    name: str

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """What each member shall have; a member that gets nothing may be left out."""
        ...
