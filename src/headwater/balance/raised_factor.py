"""A plan that gives partitions more replicas: those they have stay, and none is led by another.

Each new replica goes to the broker in whose rack the partition has fewest, and of these to the one
that holds fewest replicas, then fewest bytes. Leaders are spread afterwards by the planner's goals:
that costs no copy.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from headwater.balance.cluster_load import BrokerLoad, ClusterLoad, PartitionLoad, Resource
from headwater.balance.goals.capacity import Capacity
from headwater.balance.goals.goal import Goal
from headwater.balance.goals.racks import RackAwareness
from headwater.balance.placement import Placement
from headwater.balance.plan import BrokerOutcome, GoalOutcome, Plan, PlannedMove


def raise_factor(load: ClusterLoad, factor: int, topics: Collection[str] | None) -> Plan:
    """Give every partition of these topics, or of all, as many replicas; none gets fewer.

    A partition gets fewer than asked for if there are not so many brokers: `short_of` tells.
    """
    used = {broker.broker_id: [0, 0] for broker in load.brokers}
    for partition in load.partitions:
        for broker_id in partition.replicas:
            _take(used[broker_id], partition)
    brokers = {broker.broker_id: broker for broker in load.brokers}
    taking = [broker for broker in load.brokers if broker.takes_replicas]
    raised: list[PartitionLoad] = []
    for partition in load.partitions:
        replicas = partition.replicas
        if topics is None or partition.topic_partition.topic in topics:
            while len(replicas) < factor:
                candidates = [each for each in taking if each.broker_id not in replicas]
                if not candidates:
                    break
                racks = [brokers[each].rack for each in replicas]
                chosen = min(candidates, key=lambda each: _preference(each, racks, used))
                _take(used[chosen.broker_id], partition)
                replicas = (*replicas, chosen.broker_id)
        raised.append(replace(partition, replicas=replicas))
    return _plan(load, ClusterLoad(load.brokers, tuple(raised)))


def short_of(load: ClusterLoad, factor: int) -> int:
    """How many brokers are missing for so many replicas."""
    return max(0, factor - sum(broker.takes_replicas for broker in load.brokers))


def _preference(
    broker: BrokerLoad, racks: list[str | None], used: dict[int, list[int]]
) -> tuple[int, int, int, int]:
    in_rack = 0 if broker.rack is None else racks.count(broker.rack)
    replicas, size_bytes = used[broker.broker_id]
    return in_rack, replicas, size_bytes, broker.broker_id


def _take(used: list[int], partition: PartitionLoad) -> None:
    used[0] += 1
    used[1] += partition.size_bytes


def _plan(before: ClusterLoad, after: ClusterLoad) -> Plan:
    was, now = Placement(before), Placement(after)
    moves = tuple(
        PlannedMove(old.topic_partition, old.replicas, new.replicas, old.size_bytes)
        for old, new in zip(before.partitions, after.partitions, strict=True)
        if old.replicas != new.replicas
    )
    goals: list[Goal] = [RackAwareness(now, frozenset()), Capacity(Resource.DISK)]
    return Plan(
        moves,
        tuple(
            GoalOutcome(goal.name, goal.is_hard, _violation(goal, was), _violation(goal, now))
            for goal in goals
        ),
        tuple(
            BrokerOutcome(
                broker.broker_id,
                broker.rack,
                {each: was.used(each, broker.broker_id) for each in Resource},
                {each: now.used(each, broker.broker_id) for each in Resource},
            )
            for broker in before.brokers
        ),
    )


def _violation(goal: Goal, placement: Placement) -> int:
    return sum(goal.broker_violation(placement, each) for each in placement.brokers) + sum(
        goal.partition_violation(placement, each) for each in placement.partitions
    )
