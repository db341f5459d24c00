"""The planner: what must move moves, what is even stays, and the same cluster gives one plan."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.balance.cluster_load import BrokerLoad, ClusterLoad, PartitionLoad, Resource
from headwater.balance.plan import Plan
from headwater.balance.planner import PlanRequest, make_plan
from headwater.balance.steps import steps
from headwater.base.ids import TopicPartition
from tests.support.tiers import rounds

_MIB = 1 << 20


def _cluster(
    broker_count: int, replicas: Sequence[tuple[int, ...]], *, racks: str = "", size: int = _MIB
) -> ClusterLoad:
    return ClusterLoad.of(
        [BrokerLoad(each, racks[each] if racks else None) for each in range(broker_count)],
        [
            PartitionLoad(TopicPartition("orders", number), brokers, size, 1000, 500)
            for number, brokers in enumerate(replicas)
        ],
    )


def _used(plan: Plan, resource: Resource) -> dict[int, int]:
    return {broker.broker_id: broker.after[resource] for broker in plan.brokers}


def test_nothing_moves_where_the_load_is_even() -> None:
    load = _cluster(3, [(0, 1), (1, 2), (2, 0)])
    plan = make_plan(load, PlanRequest())
    assert plan.moves == ()
    assert not plan.unmet


def test_a_new_broker_gets_its_share_and_the_others_exchange_nothing() -> None:
    replicas = [(number % 3, (number + 1) % 3) for number in range(24)]
    plan = make_plan(_cluster(4, replicas), PlanRequest(receiving=frozenset({3})))
    assert {broker for move in plan.moves for broker in move.adding} == {3}
    share = 24 * 2 / 4
    assert share * 0.9 - 1 <= _used(plan, Resource.REPLICAS)[3] <= share * 1.1 + 1
    # Only its share is copied, and each replica once.
    assert plan.moved_bytes == _used(plan, Resource.REPLICAS)[3] * _MIB


def test_a_retired_broker_is_emptied_and_nothing_else_moves() -> None:
    replicas = [(number % 4, (number + 1) % 4, (number + 2) % 4) for number in range(20)]
    request = PlanRequest(emptied=frozenset({2}), is_balancing=False)
    plan = make_plan(_cluster(4, replicas), request)
    assert _used(plan, Resource.REPLICAS)[2] == 0
    assert all(move.removing == (2,) for move in plan.moves)
    assert len(plan.moves) == sum(2 in each for each in replicas)
    assert not plan.unmet


def test_what_cannot_be_emptied_is_told() -> None:
    plan = make_plan(_cluster(3, [(0, 1, 2)]), PlanRequest(emptied=frozenset({1})))
    assert [goal.name for goal in plan.unmet] == ["brokers emptied"]
    assert plan.moves == ()


def test_replicas_in_one_rack_are_parted_by_one_move() -> None:
    plan = make_plan(_cluster(4, [(0, 1)], racks="aabb"), PlanRequest(is_balancing=False))
    (move,) = plan.moves
    # The leader stays: to move it would disturb its clients.
    assert move.after[0] == 0
    assert move.after[1] in (2, 3)


def test_racks_hold_while_a_broker_is_emptied() -> None:
    replicas = [(0, 1), (1, 0), (0, 1), (2, 1)]
    request = PlanRequest(emptied=frozenset({1}), is_balancing=False)
    plan = make_plan(_cluster(4, replicas, racks="abab"), request)
    assert {move.after for move in plan.moves} <= {(0, 3), (3, 0), (2, 3)}
    assert not plan.unmet


def test_leaders_are_spread_without_copying_anything() -> None:
    plan = make_plan(_cluster(3, [(0, 1, 2)] * 9), PlanRequest())
    assert plan.moved_bytes == 0
    assert set(_used(plan, Resource.LEADERS).values()) == {3}


def test_a_full_disk_is_relieved_of_as_little_as_is_needed() -> None:
    sizes = [50, 30, 10, 10]
    load = ClusterLoad.of(
        [
            BrokerLoad(0, capacity={Resource.DISK: 100}),
            BrokerLoad(1, capacity={Resource.DISK: 100}),
        ],
        [PartitionLoad(TopicPartition("t", n), (0,), size) for n, size in enumerate(sizes)],
    )
    plan = make_plan(load, PlanRequest(is_balancing=False))
    assert _used(plan, Resource.DISK)[0] <= 80
    assert not plan.unmet
    assert plan.moved_bytes <= 50


def test_disks_are_evened_out_by_exchanges_where_counts_are_even_already() -> None:
    sizes = {0: 100, 1: 100, 2: 10, 3: 10}
    load = ClusterLoad.of(
        [BrokerLoad(0), BrokerLoad(1)],
        [
            PartitionLoad(TopicPartition("t", number), (0 if number < 2 else 1,), size)
            for number, size in sizes.items()
        ],
    )
    plan = make_plan(load, PlanRequest())
    assert _used(plan, Resource.REPLICAS) == {0: 2, 1: 2}
    assert _used(plan, Resource.DISK) == {0: 110, 1: 110}


def test_cordoned_and_dead_brokers_get_nothing() -> None:
    load = ClusterLoad.of(
        [BrokerLoad(0), BrokerLoad(1, is_cordoned=True), BrokerLoad(2, is_alive=False)],
        [PartitionLoad(TopicPartition("t", number), (0,)) for number in range(6)],
    )
    assert make_plan(load, PlanRequest()).moves == ()


def test_a_plan_is_cut_into_steps_that_no_broker_is_drowned_by() -> None:
    replicas = [(number % 3,) for number in range(30)]
    plan = make_plan(_cluster(4, replicas), PlanRequest(emptied=frozenset({0})))
    taken = list(steps(plan.moves, per_broker=2))
    assert [move for step in taken for move in step if move.adding]
    assert {move for step in taken for move in step} == set(plan.moves)
    for step in taken:
        for broker in range(4):
            assert sum(broker in move.adding for move in step) <= 2


@st.composite
def _loads(draw: st.DrawFn) -> ClusterLoad:
    broker_count = draw(st.integers(2, 6))
    rack_count = draw(st.integers(0, 3))
    generator = random.Random(draw(st.integers(0, 2**32)))
    brokers = [
        BrokerLoad(
            each,
            f"r{each % rack_count}" if rack_count else None,
            is_cordoned=generator.random() < 0.1,
        )
        for each in range(broker_count)
    ]
    partitions = [
        PartitionLoad(
            TopicPartition("t", number),
            tuple(generator.sample(range(broker_count), generator.randint(1, broker_count))),
            generator.randrange(1000),
            generator.randrange(100),
            generator.randrange(100),
        )
        for number in range(draw(st.integers(1, 30)))
    ]
    return ClusterLoad.of(brokers, partitions)


@given(_loads(), st.sets(st.integers(0, 5), max_size=2), st.booleans())
def test_every_plan_keeps_the_rules(load: ClusterLoad, emptied: set[int], balances: bool) -> None:
    request = PlanRequest(frozenset(emptied), is_balancing=balances)
    plan = make_plan(load, request)
    assert plan == make_plan(load, request)
    brokers = {broker.broker_id: broker for broker in load.brokers}
    for move in plan.moves:
        assert len(set(move.after)) == len(move.before) == len(move.after)
        for broker_id in move.adding:
            assert brokers[broker_id].takes_replicas
            assert broker_id not in emptied
    # The first goal is sacrificed for no other one.
    assert plan.goals[0].after <= plan.goals[0].before


@pytest.mark.parametrize("partition_count", [rounds(small=300, full=3000)])
def test_a_large_cluster_is_planned_in_a_bounded_number_of_moves(partition_count: int) -> None:
    generator = random.Random(7)
    load = ClusterLoad.of(
        [BrokerLoad(each, "abc"[each % 3]) for each in range(9)],
        [
            PartitionLoad(
                TopicPartition("t", number),
                (
                    3 * generator.randrange(2),
                    1 + 3 * generator.randrange(3),
                    2 + 3 * generator.randrange(3),
                ),
                generator.randrange(1, 1000),
            )
            for number in range(partition_count)
        ],
    )
    plan = make_plan(load, PlanRequest())
    assert not plan.unmet
    counts = _used(plan, Resource.REPLICAS).values()
    assert max(counts) <= 1.11 * partition_count * 3 / 9
    # Broker 6 had none of what stands in its rack: about a third of that is what it must get.
    assert plan.moved_replicas <= 0.5 * partition_count
