"""The uniform assignor: as even as the subscriptions allow, moving as little as possible.

If all members read the same topics, each gets its share or one partition more, and gives up only
what is beyond that. Otherwise the general algorithm looks for the most even assignment.
"""

from __future__ import annotations

import uuid
from collections import deque

from headwater.coordinator.group.consumer.assigning.assignment import Assignment
from headwater.coordinator.group.consumer.assignors.assignor import GroupSpec
from headwater.coordinator.group.consumer.assignors.uneven_subscriptions import deal_by_subscription

_Pair = tuple[uuid.UUID, int]


class UniformAssignor:
    name = "uniform"

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        if not group.members or not group.partition_counts:
            return {}
        subscriptions = {member.topics for member in group.members.values()}
        deal = _deal_evenly if len(subscriptions) == 1 else deal_by_subscription
        return {member_id: _grouped(dealt) for member_id, dealt in deal(group).items()}


def _deal_evenly(group: GroupSpec) -> dict[str, set[_Pair]]:
    """All members read the same topics."""
    total = sum(group.partition_counts.values())
    share, members_with_more = divmod(total, len(group.members))
    dealt = group.retained()
    # Those who have most are the ones that keep one more than the share, so that least is moved.
    by_size = sorted(group.ordered_members, key=lambda member_id: -len(dealt[member_id]))
    room: dict[str, int] = {}
    for rank, member_id in enumerate(by_size):
        limit = share + 1 if rank < members_with_more else share
        kept = sorted(dealt[member_id])[:limit]
        dealt[member_id] = set(kept)
        room[member_id] = limit - len(kept)
    taken = set().union(*dealt.values())
    waiting = deque(member_id for member_id in group.ordered_members if room[member_id])
    for topic_id in sorted(group.partition_counts):
        for partition in range(group.partition_counts[topic_id]):
            if (topic_id, partition) not in taken:
                # In turns, so that the partitions of a topic are spread.
                member_id = waiting.popleft()
                dealt[member_id].add((topic_id, partition))
                room[member_id] -= 1
                if room[member_id]:
                    waiting.append(member_id)
    return dealt


def _grouped(dealt: set[_Pair]) -> Assignment:
    by_topic: dict[uuid.UUID, set[int]] = {}
    for topic_id, partition in dealt:
        by_topic.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()}
