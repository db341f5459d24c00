"""Brokers that are to be retired, and those that are dead, hold nothing."""

from __future__ import annotations

from headwater.balance.cluster_load import Resource
from headwater.balance.placement import Placement
from headwater.base.ids import TopicPartition


class Emptied:
    name = "brokers emptied"
    is_hard = True
    resource = Resource.REPLICAS

    def __init__(self, broker_ids: frozenset[int]) -> None:
        self._broker_ids = broker_ids

    def broker_violation(self, placement: Placement, broker_id: int) -> int:
        is_wanted = broker_id not in self._broker_ids
        return 0 if is_wanted else placement.used(Resource.REPLICAS, broker_id)

    def wants_more(self, placement: Placement, broker_id: int) -> bool:
        return False

    def partition_violation(self, placement: Placement, partition: TopicPartition) -> int:
        return 0
