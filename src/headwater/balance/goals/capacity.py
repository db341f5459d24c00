"""No broker is filled to the brim: a share of its room is left for growth and failures."""

from __future__ import annotations

from typing import Final

from headwater.balance.cluster_load import Resource
from headwater.balance.placement import Placement
from headwater.base.ids import TopicPartition

#: Of what a broker has, as Cruise Control leaves it.
CAPACITY_SHARE: Final = 0.8


class Capacity:
    is_hard = True

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.name = f"room for {resource.value}"

    def broker_violation(self, placement: Placement, broker_id: int) -> int:
        capacity = placement.brokers[broker_id].capacity.get(self.resource)
        if capacity is None:
            return 0
        return max(0, placement.used(self.resource, broker_id) - int(capacity * CAPACITY_SHARE))

    def wants_more(self, placement: Placement, broker_id: int) -> bool:
        return False

    def partition_violation(self, placement: Placement, partition: TopicPartition) -> int:
        return 0
