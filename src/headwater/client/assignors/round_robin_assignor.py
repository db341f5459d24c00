"""Round-robin: all partitions of all topics in order, dealt out to the members in turns.

With equal subscriptions nobody has more than one partition more than anybody else. A member that
does not want a topic is passed over, and its turn is not made up for: with unequal subscriptions
one member may end up with nearly everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import (
    MemberAssignment,
    PlainAssignor,
    Subscriptions,
    as_assignments,
    in_order,
    partitions_of,
    takers_by_topic,
)


class RoundRobinAssignor(PlainAssignor):
    name = "roundrobin"

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        members = in_order(subscriptions)
        dealt: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        turns = cycle(members)
        for topic, takers in takers_by_topic(subscriptions).items():
            wanting = frozenset(takers)
            for partition in partitions_of(topic, partition_counts):
                # Somebody wants the topic, or it would not be here: the search ends.
                taker = next(each for each in turns if each in wanting)
                dealt[taker].append(partition)
        return as_assignments(dealt)
