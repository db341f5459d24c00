"""Makes a plan: goal after goal, by small changes that each bring a goal nearer.

For each goal the broker that violates it most is looked at. What could help it is a list of
changes: another replica leads, which costs nothing; a replica moves; two replicas change places.
They are tried in the order of what they cost for what they bring, and the first is kept that
violates no goal of higher rank more than before. When nothing helps any more, the next goal is
looked at.

The plan is the difference between the beginning and the end, so a replica that was moved twice on
the way is moved once. Two runs with the same cluster give the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from headwater.balance.cluster_load import ClusterLoad, Resource
from headwater.balance.goals.capacity import Capacity
from headwater.balance.goals.distribution import Distribution
from headwater.balance.goals.emptied import Emptied
from headwater.balance.goals.goal import Goal
from headwater.balance.goals.racks import RackAwareness
from headwater.balance.placement import Action, Placement, led_by, moved
from headwater.balance.plan import BrokerOutcome, GoalOutcome, Plan, PlannedMove
from headwater.base.ids import TopicPartition

#: Which resources a broker can have too little of, and which are spread, the important ones first.
_LIMITED: Final = (Resource.REPLICAS, Resource.DISK, Resource.INBOUND, Resource.OUTBOUND)
_SPREAD: Final = (*_LIMITED, Resource.LEADERS)
#: Resources that a broker is rid of when another replica leads.
_OF_LEADERS: Final = frozenset({Resource.OUTBOUND, Resource.LEADERS})
#: So many brokers are tried as the other side of a change: the ones that need it most.
_PARTNERS_MAX: Final = 8
#: So many changes are tried before a broker is given up.
_TRIES_MAX: Final = 1000
#: So many replicas of each side are tried when two change places.
_EXCHANGES_MAX: Final = 24


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is wanted of a plan."""

    #: Brokers that shall hold nothing; dead ones are not among them unless they are named.
    emptied: frozenset[int] = frozenset()
    #: Only these get replicas; None for all that can.
    receiving: frozenset[int] | None = None
    #: Whether the load is spread; without it only what must move is moved.
    is_balancing: bool = True


def make_plan(load: ClusterLoad, request: PlanRequest) -> Plan:
    return _Planner(load, request).run()


def _has_limit(load: ClusterLoad, resource: Resource) -> bool:
    return any(resource in broker.capacity for broker in load.brokers)


class _Planner:
    def __init__(self, load: ClusterLoad, request: PlanRequest) -> None:
        self._load = load
        self._placement = placement = Placement(load)
        can_take = [each.broker_id for each in load.brokers if each.takes_replicas]
        sharing = frozenset(can_take) - request.emptied
        asked = sharing if request.receiving is None else sharing & request.receiving
        self._receiving = sorted(asked)
        self._goals: list[Goal] = [
            Emptied(request.emptied),
            RackAwareness(placement, request.emptied),
            *(Capacity(resource) for resource in _LIMITED if _has_limit(load, resource)),
        ]
        if request.is_balancing:
            self._goals += (Distribution(resource, placement, sharing) for resource in _SPREAD)
        self._hard = [goal for goal in self._goals if goal.is_hard]

    def run(self) -> Plan:
        before = [self._total(goal) for goal in self._goals]
        for rank, goal in enumerate(self._goals):
            self._improve(goal, rank)
        outcomes = [
            GoalOutcome(goal.name, goal.is_hard, was, self._total(goal))
            for goal, was in zip(self._goals, before, strict=True)
        ]
        return Plan(self._moves(), tuple(outcomes), self._brokers())

    # -- one goal --------------------------------------------------------------------------------

    def _improve(self, goal: Goal, rank: int) -> None:
        """Until nothing helps: each change that is kept makes the goal's violation smaller."""
        placement = self._placement
        for partition in placement.partitions:
            while goal.partition_violation(placement, partition):
                if not self._try_first(self._anywhere(partition, goal), rank):
                    break
        # A broker that nothing helps is left alone: to try again after each change of another
        # one would cost far more than it brings.
        hopeful = dict.fromkeys(placement.brokers)
        while hopeful:
            worst = min(hopeful, key=lambda each: (-goal.broker_violation(placement, each), each))
            if not goal.broker_violation(placement, worst):
                return
            if not self._improve_broker(goal, rank, worst):
                del hopeful[worst]

    def _improve_broker(self, goal: Goal, rank: int, broker_id: int) -> bool:
        if goal.wants_more(self._placement, broker_id):
            changes = self._filling(goal, broker_id)
        else:
            changes = self._shedding(goal, broker_id)
        if self._try_first(changes, rank):
            return True
        return not goal.is_hard and self._try_first(self._exchanging(goal, broker_id), rank)

    def _try_first(self, changes: Iterator[Sequence[Action]], rank: int) -> bool:
        """Keep the first change that helps and violates no hard goal; else one that may."""
        goal, before, after = self._goals[rank], self._goals[:rank], self._hard[rank + 1 :]
        second_best: Sequence[Action] = ()
        for actions in islice(changes, _TRIES_MAX):
            if self._gain([goal], actions) <= 0 or self._gain(before, actions) < 0:
                continue
            if self._gain(after, actions) >= 0:
                self._apply(actions)
                return True
            second_best = second_best or actions
        self._apply(second_best)
        return bool(second_best)

    def _gain(self, goals: Sequence[Goal], actions: Sequence[Action]) -> int:
        """By how much a goal would be violated less; of several, the one that gains least."""
        if not goals:
            return 0
        brokers = tuple(dict.fromkeys(each for action in actions for each in action.brokers))
        partitions = [action.topic_partition for action in actions]
        before = [self._violation(goal, brokers, partitions) for goal in goals]
        self._apply(actions)
        after = [self._violation(goal, brokers, partitions) for goal in goals]
        self._apply([action.reversed() for action in reversed(actions)])
        return min(was - now for was, now in zip(before, after, strict=True))

    def _violation(
        self, goal: Goal, brokers: Sequence[int], partitions: Sequence[TopicPartition]
    ) -> int:
        placement = self._placement
        return sum(goal.broker_violation(placement, each) for each in brokers) + sum(
            goal.partition_violation(placement, each) for each in partitions
        )

    def _apply(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self._placement.apply(action)

    # -- changes that may help, the cheapest for what they bring first ---------------------------

    def _shedding(self, goal: Goal, broker_id: int) -> Iterator[Sequence[Action]]:
        """The broker has too much."""
        placement = self._placement
        partitions = self._ranked(goal, broker_id)
        targets = self._least_loaded(goal.resource)
        if goal.resource in _OF_LEADERS:
            for partition in partitions:
                replicas = placement.replicas[partition]
                if replicas[0] == broker_id:
                    followers = [each for each in targets if each in replicas[1:]]
                    yield from ([led_by(partition, replicas, each)] for each in followers)
        for partition in partitions:
            replicas = placement.replicas[partition]
            others = [each for each in targets if each not in replicas]
            for target in others[:_PARTNERS_MAX]:
                yield [moved(partition, replicas, broker_id, target)]

    def _filling(self, goal: Goal, broker_id: int) -> Iterator[Sequence[Action]]:
        """The broker has too little."""
        if broker_id not in self._receiving:
            return
        placement = self._placement
        if goal.resource in _OF_LEADERS:
            for partition in list(placement.on_broker(broker_id)):
                replicas = placement.replicas[partition]
                if replicas[0] != broker_id:
                    yield [led_by(partition, replicas, broker_id)]
        sources = sorted(
            placement.brokers, key=lambda each: (-placement.used(goal.resource, each), each)
        )
        for source in sources[:_PARTNERS_MAX]:
            for partition in self._ranked(goal, source):
                replicas = placement.replicas[partition]
                if broker_id not in replicas:
                    yield [moved(partition, replicas, source, broker_id)]

    def _exchanging(self, goal: Goal, broker_id: int) -> Iterator[Sequence[Action]]:
        """A costly replica changes places with a cheap one: the number of each stays."""
        if broker_id not in self._receiving:
            return
        placement, resource = self._placement, goal.resource
        order = self._least_loaded(resource)
        has_too_little = goal.wants_more(placement, broker_id)
        for partner in islice(reversed(order) if has_too_little else order, _PARTNERS_MAX):
            if partner == broker_id:
                continue
            high, low = (partner, broker_id) if has_too_little else (broker_id, partner)
            costly = self._ranked(goal, high)
            cheap = self._ranked(goal, low)[::-1]
            for one in costly[:_EXCHANGES_MAX]:
                if low in placement.replicas[one]:
                    continue
                for other in cheap[:_EXCHANGES_MAX]:
                    if high not in placement.replicas[other]:
                        yield [
                            moved(one, placement.replicas[one], high, low),
                            moved(other, placement.replicas[other], low, high),
                        ]

    def _anywhere(self, partition: TopicPartition, goal: Goal) -> Iterator[Sequence[Action]]:
        """The replicas of a partition lie wrong: each could lie anywhere else."""
        replicas = self._placement.replicas[partition]
        targets = [each for each in self._least_loaded(goal.resource) if each not in replicas]
        for target in targets:
            # The last one first: to move the leader disturbs its clients.
            for source in reversed(replicas):
                yield [moved(partition, replicas, source, target)]

    def _ranked(self, goal: Goal, broker_id: int) -> list[TopicPartition]:
        """Those that take something of the resource: fewest bytes for what it brings first."""
        placement, resource = self._placement, goal.resource
        ranked = []
        for partition in placement.on_broker(broker_id):
            cost = placement.cost(partition, resource, broker_id)
            if cost:
                ratio = placement.partitions[partition].size_bytes / cost
                ranked.append((ratio, -cost, partition))
        ranked.sort()
        return [partition for _, _, partition in ranked]

    def _least_loaded(self, resource: Resource) -> list[int]:
        placement = self._placement
        return sorted(
            self._receiving,
            key=lambda each: (
                placement.used(resource, each),
                placement.used(Resource.DISK, each),
                each,
            ),
        )

    # -- what came of it -------------------------------------------------------------------------

    def _total(self, goal: Goal) -> int:
        placement = self._placement
        return self._violation(goal, tuple(placement.brokers), tuple(placement.partitions))

    def _moves(self) -> tuple[PlannedMove, ...]:
        return tuple(
            PlannedMove(each.topic_partition, each.replicas, now, each.size_bytes)
            for each in self._load.partitions
            if (now := self._placement.replicas[each.topic_partition]) != each.replicas
        )

    def _brokers(self) -> tuple[BrokerOutcome, ...]:
        before = Placement(self._load)
        return tuple(
            BrokerOutcome(
                broker.broker_id,
                broker.rack,
                {each: before.used(each, broker.broker_id) for each in Resource},
                {each: self._placement.used(each, broker.broker_id) for each in Resource},
            )
            for broker in self._load.brokers
        )
