"""Deals partitions out evenly among members that read different topics.

Members keep what they have; what is free goes to the subscriber with least. Then loads are evened
out: as long as a member can hand a partition on, over any number of others, to one that has at
least two fewer, that is done, along the shortest such chain. Where no chain is left no assignment
is more even: a chain is what an improvement consists of. Each one makes the sum of the squared
loads smaller, so there is an end.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable

from headwater.coordinator.group.consumer.assignors.assignor import GroupSpec

_Pair = tuple[uuid.UUID, int]


def deal_by_subscription(group: GroupSpec) -> dict[str, set[_Pair]]:
    """The partitions of each member."""
    dealing = _Dealing(group)
    dealing.deal_free()
    while dealing.even_out():
        pass
    return dealing.dealt


class _Dealing:
    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._order = {member_id: rank for rank, member_id in enumerate(group.ordered_members)}
        self.dealt = group.retained()
        self._kept = {member_id: frozenset(pairs) for member_id, pairs in self.dealt.items()}
        self._subscribers: dict[uuid.UUID, list[str]] = {}
        for member_id in self._order:
            for topic_id in sorted(group.members[member_id].topics):
                self._subscribers.setdefault(topic_id, []).append(member_id)
        #: What each member has, by topic; the same as `dealt`.
        self._by_topic: dict[str, dict[uuid.UUID, set[int]]] = {}
        for member_id, owned in self.dealt.items():
            by_topic = self._by_topic.setdefault(member_id, {})
            for topic_id, partition in owned:
                by_topic.setdefault(topic_id, set()).add(partition)

    def deal_free(self) -> None:
        """Give what nobody has to subscribers, topics with the fewest of them first."""
        taken = set().union(*self.dealt.values())
        for topic_id in sorted(
            self._group.partition_counts,
            key=lambda topic_id: (len(self._subscribers[topic_id]), topic_id),
        ):
            for partition in range(self._group.partition_counts[topic_id]):
                if (topic_id, partition) not in taken:
                    self._give(self._lightest(self._subscribers[topic_id]), topic_id, partition)

    def even_out(self) -> bool:
        """Make the loads more even by one chain of moves; False if that is not possible."""
        heaviest_first = sorted(
            self._order, key=lambda member_id: (-len(self.dealt[member_id]), self._order[member_id])
        )
        lightest_load = len(self.dealt[heaviest_first[-1]])
        for member_id in heaviest_first:
            if len(self.dealt[member_id]) < lightest_load + 2:
                return False
            chain = self._chain_from(member_id)
            if chain:
                for giver, topic_id, taker in chain:
                    self._move(giver, topic_id, taker)
                return True
        return False

    def _chain_from(self, start: str) -> list[tuple[str, uuid.UUID, str]]:
        """The shortest way to somebody who has at least two fewer: (giver, topic, taker)s."""
        limit = len(self.dealt[start]) - 2
        came_by: dict[str, tuple[str, uuid.UUID]] = {}
        reached = {start}
        front = deque([start])
        seen_topics: set[uuid.UUID] = set()
        while front:
            found: list[str] = []
            for _ in range(len(front)):
                giver = front.popleft()
                for topic_id in sorted(self._by_topic[giver]):
                    # Whoever has a partition of the topic reaches the same members.
                    if topic_id in seen_topics:
                        continue
                    seen_topics.add(topic_id)
                    for taker in self._subscribers[topic_id]:
                        if taker not in reached:
                            reached.add(taker)
                            came_by[taker] = (giver, topic_id)
                            front.append(taker)
                            if len(self.dealt[taker]) <= limit:
                                found.append(taker)
            if found:
                return self._back_from(self._lightest(found), came_by)
        return []

    def _back_from(
        self, end: str, came_by: dict[str, tuple[str, uuid.UUID]]
    ) -> list[tuple[str, uuid.UUID, str]]:
        chain = []
        taker = end
        while taker in came_by:
            giver, topic_id = came_by[taker]
            chain.append((giver, topic_id, taker))
            taker = giver
        return chain

    def _move(self, giver: str, topic_id: uuid.UUID, taker: str) -> None:
        """Hand on one partition of the topic, best one that its new owner had before."""
        partition = min(
            self._by_topic[giver][topic_id],
            key=lambda number: (
                (topic_id, number) not in self._kept[taker],
                (topic_id, number) in self._kept[giver],
                -number,
            ),
        )
        mine = self._by_topic[giver][topic_id]
        mine.remove(partition)
        if not mine:
            del self._by_topic[giver][topic_id]
        self.dealt[giver].remove((topic_id, partition))
        self._give(taker, topic_id, partition)

    def _give(self, member_id: str, topic_id: uuid.UUID, partition: int) -> None:
        self.dealt[member_id].add((topic_id, partition))
        self._by_topic[member_id].setdefault(topic_id, set()).add(partition)

    def _lightest(self, member_ids: Iterable[str]) -> str:
        return min(
            member_ids, key=lambda member_id: (len(self.dealt[member_id]), self._order[member_id])
        )
