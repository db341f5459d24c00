"""Range: the partitions of each topic in runs of equal length, one for each member that wants it.

Topics are looked at one by one, so members that read the same topics get the same numbers of each:
what is keyed alike stays together. The price is that the members that come first get one more of
*every* topic that cannot be divided, and with many small topics have far more to do than the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import (
    MemberAssignment,
    PlainAssignor,
    Subscriptions,
    as_assignments,
    partitions_of,
    takers_by_topic,
)


class RangeAssignor(PlainAssignor):
    name = "range"

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        dealt: dict[str, list[TopicPartition]] = {member_id: [] for member_id in subscriptions}
        for topic, takers in takers_by_topic(subscriptions).items():
            partitions = partitions_of(topic, partition_counts)
            span, left_over = divmod(len(partitions), len(takers))
            start = 0
            for place, member_id in enumerate(takers):
                end = start + span + (1 if place < left_over else 0)
                dealt[member_id] += partitions[start:end]
                start = end
        return as_assignments(dealt)
