"""Deals partitions out evenly, and otherwise leaves as many as possible where they are.

Evenly comes first. Members may want different topics, so "evenly" means: no partition can be handed
on, directly or through a chain of members that each pass one on, from a member to another that has
at least two fewer. When no such chain is left, no assignment is more even than this one (what is
computed is an optimal semi-matching). Each chain is the shortest there is, so few partitions move,
and those that had no owner before are handed on first, which costs nobody anything.

With equal subscriptions every chain is a single step, nobody has two more than anybody else, and
exactly as many partitions move as must.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import (
    Subscriptions,
    in_order,
    partitions_of,
    takers_by_topic,
)


class StickyDealing:
    """One assignment in the making. `owned` says who has what; nothing is claimed by two."""

    def __init__(
        self,
        partition_counts: Mapping[str, int],
        subscriptions: Subscriptions,
        owned: Mapping[str, set[TopicPartition]],
    ) -> None:
        self._members = in_order(subscriptions)
        self._places = {member_id: place for place, member_id in enumerate(self._members)}
        self._takers = {
            topic: takers
            for topic, takers in takers_by_topic(subscriptions).items()
            if partition_counts.get(topic, 0) > 0
        }
        self._wanted = {name: frozenset(each.topics) for name, each in subscriptions.items()}
        #: What each member has by now, by topic.
        self._dealt: dict[str, dict[str, set[TopicPartition]]] = {
            each: {} for each in self._members
        }
        self._loads = dict.fromkeys(self._members, 0)
        self._former = {
            partition: member_id for member_id, mine in owned.items() for partition in mine
        }
        self._partitions = [
            partition
            # The topics that few want come first, while there is most choice among those few.
            for topic in sorted(self._takers, key=lambda topic: (len(self._takers[topic]), topic))
            for partition in partitions_of(topic, partition_counts)
        ]

    def deal(self) -> dict[str, list[TopicPartition]]:
        unowned = [partition for partition in self._partitions if not self._keep(partition)]
        self._hand_out(unowned)
        while self._even_out():
            pass
        return {
            member_id: sorted(partition for mine in topics.values() for partition in mine)
            for member_id, topics in self._dealt.items()
        }

    def _keep(self, partition: TopicPartition) -> bool:
        """Leave it with whoever has it, if that is a member who wants it still."""
        former = self._former.get(partition)
        if former is None or partition.topic not in self._wanted.get(former, ()):
            return False
        self._give(partition, former)
        return True

    def _hand_out(self, unowned: list[TopicPartition]) -> None:
        """Give each to the one who has least of those who want it."""
        heap: list[tuple[int, int, str]] = []
        topic: str | None = None
        for partition in unowned:
            if partition.topic != topic:
                topic = partition.topic
                heap = [
                    (self._loads[each], self._places[each], each) for each in self._takers[topic]
                ]
                heapify(heap)
            _, place, taker = heappop(heap)
            self._give(partition, taker)
            heappush(heap, (self._loads[taker], place, taker))

    def _even_out(self) -> bool:
        """Hand one partition on, from who has the most, if that makes it more even."""
        least = min(self._loads.values(), default=0)
        for member_id in sorted(self._members, key=lambda each: -self._loads[each]):
            if self._loads[member_id] - least < 2:
                return False
            chain = self._chain_from(member_id)
            if chain is not None:
                for topic, giver, taker in chain:
                    self._hand_on(topic, giver, taker)
                return True
        return False

    def _chain_from(self, start: str) -> list[tuple[str, str, str]] | None:
        """The shortest chain of (topic, giver, taker) to a member with at least two fewer."""
        came_by: dict[str, tuple[str, str]] = {start: ("", "")}
        passed_topics: set[str] = set()
        ring = [start]
        while ring:
            reached = self._reached_from(ring, came_by, passed_topics)
            least = min(
                reached, key=lambda each: (self._loads[each], self._places[each]), default=""
            )
            if reached and self._loads[start] - self._loads[least] >= 2:
                return self._way_back(least, start, came_by)
            ring = reached
        return None

    def _reached_from(
        self, ring: list[str], came_by: dict[str, tuple[str, str]], passed_topics: set[str]
    ) -> list[str]:
        """Who can be handed something by the members of the ring, and by nobody before them."""
        reached: list[str] = []
        for giver in ring:
            # Rather of a topic of which the giver has many, so that all have some of each.
            mine = self._dealt[giver]
            for topic in sorted(mine.keys() - passed_topics, key=lambda t: (-len(mine[t]), t)):
                if len(came_by) == len(self._members):
                    return reached
                passed_topics.add(topic)
                for taker in self._takers[topic]:
                    if taker not in came_by:
                        came_by[taker] = (topic, giver)
                        reached.append(taker)
        return reached

    def _way_back(
        self, end: str, start: str, came_by: Mapping[str, tuple[str, str]]
    ) -> list[tuple[str, str, str]]:
        chain: list[tuple[str, str, str]] = []
        while end != start:
            topic, giver = came_by[end]
            chain.append((topic, giver, end))
            end = giver
        return chain

    def _hand_on(self, topic: str, giver: str, taker: str) -> None:
        """Move one partition of that topic: best one that was the taker's or nobody's."""

        def cost(partition: TopicPartition) -> tuple[int, int]:
            former = self._former.get(partition)
            return (0 if former == taker else 2 if former == giver else 1, -partition.partition)

        partition = min(self._dealt[giver][topic], key=cost)
        self._dealt[giver][topic].remove(partition)
        if not self._dealt[giver][topic]:
            del self._dealt[giver][topic]
        self._loads[giver] -= 1
        self._give(partition, taker)

    def _give(self, partition: TopicPartition, taker: str) -> None:
        self._dealt[taker].setdefault(partition.topic, set()).add(partition)
        self._loads[taker] += 1
