"""A resource is spread evenly: each broker has about as much as the average.

*About* is a tenth more or less, as in Cruise Control: without such a margin every plan would move
something. What cannot be divided may differ by one.
"""

from __future__ import annotations

import math
from typing import Final

from headwater.balance.cluster_load import Resource
from headwater.balance.placement import Placement
from headwater.base.ids import TopicPartition

BALANCE_MARGIN: Final = 0.1


class Distribution:
    is_hard = False

    def __init__(self, resource: Resource, placement: Placement, sharing: frozenset[int]) -> None:
        self.resource = resource
        self.name = f"{resource.value} spread evenly"
        self._sharing = sharing
        total = sum(placement.used(resource, broker_id) for broker_id in placement.brokers)
        average = total / max(1, len(sharing))
        self.upper = max(math.ceil(average), math.floor(average * (1 + BALANCE_MARGIN)))
        self.lower = min(math.floor(average), math.ceil(average * (1 - BALANCE_MARGIN)))

    def broker_violation(self, placement: Placement, broker_id: int) -> int:
        if broker_id not in self._sharing:
            return 0  # That it holds nothing is another goal's.
        used = placement.used(self.resource, broker_id)
        return max(0, used - self.upper, self.lower - used)

    def wants_more(self, placement: Placement, broker_id: int) -> bool:
        return placement.used(self.resource, broker_id) < self.lower

    def partition_violation(self, placement: Placement, partition: TopicPartition) -> int:
        return 0
