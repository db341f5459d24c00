"""A goal: says of a broker or a partition by how much it is violated.

Goals have an order, after Cruise Control's: the hard ones first, then those that spread the load.
What is done for a goal may not violate one before it more than it was. So a goal has only to say
how large a violation is, and where it would have replicas taken away or added; trying and taking
back is the planner's.
"""

from __future__ import annotations

from typing import Protocol

from headwater.balance.cluster_load import Resource
from headwater.balance.placement import Placement
from headwater.base.ids import TopicPartition


class Goal(Protocol):
    @property
    def name(self) -> str:
        """As it stands in a plan."""
        ...

    @property
    def is_hard(self) -> bool: ...

    @property
    def resource(self) -> Resource:
        """By which it judges: how much a replica helps, and which broker is the least loaded."""
        ...

    def broker_violation(self, placement: Placement, broker_id: int) -> int:
        """By how much a broker has too much or too little; 0 if it is as it should be."""
        ...

    def wants_more(self, placement: Placement, broker_id: int) -> bool:
        """Whether a broker that violates it has too little, and not too much."""
        ...

    def partition_violation(self, placement: Placement, partition: TopicPartition) -> int:
        """How many replicas of a partition lie wrong; 0 if none does."""
        ...
