"""The range assignor: topic by topic, the same partition numbers of like topics to one member.

Topics with the same number of partitions and the same readers are dealt out alike, so that members
can join their records. Within such a class each member gets its share of the numbers or one more.
It keeps numbers that it has already; what is free is dealt out in ascending runs.
"""

from __future__ import annotations

import uuid
from collections import Counter

from headwater.coordinator.group.consumer.assigning.assignment import Assignment
from headwater.coordinator.group.consumer.assignors.assignor import GroupSpec


class RangeAssignor:
    name = "range"

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        order = group.ordered_members
        classes: dict[tuple[int, tuple[str, ...]], list[uuid.UUID]] = {}
        for topic_id in sorted(group.partition_counts):
            readers = tuple(
                member_id for member_id in order if topic_id in group.members[member_id].topics
            )
            count = group.partition_counts[topic_id]
            classes.setdefault((count, readers), []).append(topic_id)
        dealt: dict[str, dict[uuid.UUID, frozenset[int]]] = {}
        for (count, readers), topic_ids in classes.items():
            for member_id, numbers in _deal(group, count, readers, topic_ids).items():
                for topic_id in topic_ids:
                    dealt.setdefault(member_id, {})[topic_id] = numbers
        return dict(dealt)


def _deal(
    group: GroupSpec, count: int, readers: tuple[str, ...], topic_ids: list[uuid.UUID]
) -> dict[str, frozenset[int]]:
    """The numbers of partitions that each reader gets of all these topics."""
    share, readers_with_more = divmod(count, len(readers))
    dealt = _kept_numbers(group, count, readers, topic_ids)
    by_size = sorted(readers, key=lambda member_id: -len(dealt[member_id]))
    room: dict[str, int] = {}
    for rank, member_id in enumerate(by_size):
        limit = share + 1 if rank < readers_with_more else share
        dealt[member_id] = dealt[member_id][:limit]
        room[member_id] = limit - len(dealt[member_id])
    taken = set().union(*dealt.values())
    free = iter([number for number in range(count) if number not in taken])
    return {
        member_id: frozenset(dealt[member_id]).union(next(free) for _ in range(room[member_id]))
        for member_id in readers
        if dealt[member_id] or room[member_id]
    }


def _kept_numbers(
    group: GroupSpec, count: int, readers: tuple[str, ...], topic_ids: list[uuid.UUID]
) -> dict[str, list[int]]:
    """The numbers that each reader could keep: whoever has one in most of the topics does."""
    holders: dict[int, Counter[str]] = {}
    for member_id in readers:
        current = group.members[member_id].current
        for topic_id in topic_ids:
            for number in current.get(topic_id, ()):
                if number < count:
                    holders.setdefault(number, Counter())[member_id] += 1
    kept: dict[str, list[int]] = {member_id: [] for member_id in readers}
    for number in sorted(holders):
        # Of equals, most_common gives the one that was counted first: the readers' order.
        kept[holders[number].most_common(1)[0][0]].append(number)
    return kept
