"""A plan: which partitions get which replicas, what that costs, and what it is good for."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.balance.cluster_load import Resource
from headwater.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A partition that gets another list of replicas."""

    topic_partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(each for each in self.after if each not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(each for each in self.before if each not in self.after)

    @property
    def moved_bytes(self) -> int:
        """What is copied: nothing, if only the order changes."""
        return self.size_bytes * len(self.adding)


@dataclass(frozen=True, slots=True)
class GoalOutcome:
    """By how much a goal is violated over all brokers and partitions, before and after."""

    name: str
    is_hard: bool
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class BrokerOutcome:
    """What a broker holds, before and after."""

    broker_id: int
    rack: str | None
    before: dict[Resource, int]
    after: dict[Resource, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """Moves in the order of their partitions, with goals in the order of their importance."""

    moves: tuple[PlannedMove, ...]
    goals: tuple[GoalOutcome, ...]
    brokers: tuple[BrokerOutcome, ...]

    @property
    def moved_bytes(self) -> int:
        return sum(move.moved_bytes for move in self.moves)

    @property
    def moved_replicas(self) -> int:
        return sum(len(move.adding) for move in self.moves)

    @property
    def unmet(self) -> tuple[GoalOutcome, ...]:
        """Hard goals that the plan cannot meet: there are too few brokers, racks or bytes."""
        return tuple(goal for goal in self.goals if goal.is_hard and goal.after)

    def seconds(self, bytes_per_second: int) -> float:
        """How long it takes if each broker receives so much: the one that gets most decides."""
        received: dict[int, int] = {}
        for move in self.moves:
            for broker_id in move.adding:
                received[broker_id] = received.get(broker_id, 0) + move.size_bytes
        return max(received.values(), default=0) / bytes_per_second
