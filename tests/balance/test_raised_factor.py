"""Raising the factor: what is there stays, what is new is spread over racks and brokers."""

from __future__ import annotations

from headwater.balance.cluster_load import BrokerLoad, ClusterLoad, PartitionLoad, Resource
from headwater.balance.raised_factor import raise_factor, short_of
from headwater.base.ids import TopicPartition

_MIB = 1 << 20


def _alone(broker_count: int, partition_count: int, racks: str = "") -> ClusterLoad:
    """All partitions of two topics on the first broker."""
    return ClusterLoad.of(
        [BrokerLoad(each, racks[each] if racks else None) for each in range(broker_count)],
        [
            PartitionLoad(TopicPartition(topic, number), (0,), _MIB)
            for topic in ("orders", "payments")
            for number in range(partition_count)
        ],
    )


def test_everything_gets_as_many_replicas_and_keeps_its_leader() -> None:
    plan = raise_factor(_alone(4, 9), 3, None)
    assert len(plan.moves) == 18
    assert all(move.after[0] == 0 and len(set(move.after)) == 3 for move in plan.moves)
    counts = [broker.after[Resource.REPLICAS] for broker in plan.brokers]
    assert counts[0] == 18 and max(counts[1:]) - min(counts[1:]) <= 1
    assert plan.moved_bytes == 36 * _MIB
    assert not plan.unmet


def test_replicas_stand_in_different_racks() -> None:
    plan = raise_factor(_alone(6, 8, "aaabbc"), 3, None)
    racks = {broker.broker_id: broker.rack for broker in plan.brokers}
    assert all({racks[each] for each in move.after} == set("abc") for move in plan.moves)


def test_only_topics_that_are_named_and_short_of_replicas_change() -> None:
    load = _alone(3, 2)
    assert {move.topic_partition.topic for move in raise_factor(load, 2, ["orders"]).moves} == {
        "orders"
    }
    assert raise_factor(load, 1, None).moves == ()


def test_brokers_that_take_nothing_get_nothing() -> None:
    brokers = [BrokerLoad(0), BrokerLoad(1, is_cordoned=True), BrokerLoad(2)]
    load = ClusterLoad.of(brokers, [PartitionLoad(TopicPartition("orders", 0), (0,))])
    assert [move.after for move in raise_factor(load, 2, None).moves] == [(0, 2)]
    assert short_of(load, 2) == 0
    assert short_of(load, 3) == 1


def test_a_full_disk_is_told() -> None:
    brokers = [BrokerLoad(0), BrokerLoad(1, capacity={Resource.DISK: _MIB})]
    load = ClusterLoad.of(brokers, [PartitionLoad(TopicPartition("orders", 0), (0,), _MIB)])
    assert [goal.name for goal in raise_factor(load, 2, None).unmet] == ["room for disk"]
