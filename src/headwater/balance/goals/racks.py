"""The replicas of a partition stand in as many racks as there are.

With fewer racks than replicas none holds more than its share: three replicas in two racks are two
and one. If a live broker does not say where it stands, nothing can be promised, and Kafka's own
placement looks at no rack either.
"""

from __future__ import annotations

from collections import Counter

from headwater.balance.cluster_load import Resource
from headwater.balance.placement import Placement
from headwater.base.ids import TopicPartition


class RackAwareness:
    name = "replicas in different racks"
    is_hard = True
    resource = Resource.REPLICAS

    def __init__(self, placement: Placement, excluded: frozenset[int]) -> None:
        standing = [
            broker
            for broker in placement.brokers.values()
            if broker.is_alive and broker.broker_id not in excluded
        ]
        racks = {broker.rack for broker in standing}
        self._rack_count = 0 if None in racks else len(racks)

    def broker_violation(self, placement: Placement, broker_id: int) -> int:
        return 0

    def wants_more(self, placement: Placement, broker_id: int) -> bool:
        return False

    def partition_violation(self, placement: Placement, partition: TopicPartition) -> int:
        if self._rack_count == 0:
            return 0
        replicas = placement.replicas[partition]
        share = -(-len(replicas) // self._rack_count)
        counts = Counter(placement.brokers[broker_id].rack for broker_id in replicas)
        return sum(max(0, count - share) for count in counts.values())
