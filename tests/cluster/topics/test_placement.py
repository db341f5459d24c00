"""Where replicas are placed: never wrong, spread evenly, over racks if there are any."""

import random
from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.topics.placement import place_added_replicas, place_replicas

_clusters = st.dictionaries(st.integers(0, 1_000), st.none(), min_size=1, max_size=9)
_racked_clusters = st.dictionaries(
    st.integers(0, 1_000), st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9
)


@st.composite
def _tasks(
    draw: st.DrawFn, clusters: st.SearchStrategy[Mapping[int, str | None]]
) -> tuple[Mapping[int, str | None], int, int, random.Random]:
    racks = draw(clusters)
    replication_factor = draw(st.integers(1, len(racks)))
    return racks, draw(st.integers(1, 40)), replication_factor, random.Random(draw(st.integers()))


def _spread(counts: Counter[int], racks: Mapping[int, str | None]) -> int:
    return max(counts[broker] for broker in racks) - min(counts[broker] for broker in racks)


@given(_tasks(st.one_of(_clusters, _racked_clusters)))
def test_every_partition_has_so_many_different_live_brokers(
    task: tuple[Mapping[int, str | None], int, int, random.Random],
) -> None:
    racks, partition_count, replication_factor, generator = task
    assignment = place_replicas(racks, partition_count, replication_factor, generator)
    assert len(assignment) == partition_count
    for replicas in assignment:
        assert len(replicas) == len(set(replicas)) == replication_factor
        assert racks.keys() >= set(replicas)


@given(_tasks(st.one_of(_clusters, _racked_clusters)))
def test_leaders_are_spread_evenly(
    task: tuple[Mapping[int, str | None], int, int, random.Random],
) -> None:
    racks, partition_count, replication_factor, generator = task
    assignment = place_replicas(racks, partition_count, replication_factor, generator)
    assert _spread(Counter(replicas[0] for replicas in assignment), racks) <= 1


@given(_tasks(_clusters))
def test_replicas_are_spread_evenly_when_the_circle_is_full(
    task: tuple[Mapping[int, str | None], int, int, random.Random],
) -> None:
    racks, rounds, replication_factor, generator = task
    partition_count = rounds % 5 * len(racks) or len(racks)
    assignment = place_replicas(racks, partition_count, replication_factor, generator)
    assert _spread(Counter(broker for each in assignment for broker in each), racks) == 0


@given(_tasks(_racked_clusters))
def test_replicas_stand_in_as_many_racks_as_possible(
    task: tuple[Mapping[int, str | None], int, int, random.Random],
) -> None:
    racks, partition_count, replication_factor, generator = task
    rack_count = len(set(racks.values()))
    for replicas in place_replicas(racks, partition_count, replication_factor, generator):
        used = {racks[broker] for broker in replicas}
        assert len(used) == min(rack_count, replication_factor)


def test_the_followers_of_one_leader_differ_from_round_to_round() -> None:
    racks: dict[int, str | None] = dict.fromkeys(range(5))
    assignment = place_replicas(racks, 20, 2, random.Random(3))
    followers = Counter(replicas[1] for replicas in assignment if replicas[0] == 0)
    assert followers == {1: 1, 2: 1, 3: 1, 4: 1}


def test_brokers_of_which_only_some_have_a_rack_are_treated_as_without() -> None:
    racks = {0: "a", 1: "a", 2: None}
    assignment = place_replicas(racks, 30, 2, random.Random(1))
    assert {frozenset(replicas) for replicas in assignment} == {
        frozenset(pair) for pair in ((0, 1), (1, 2), (0, 2))
    }


@given(_tasks(st.one_of(_clusters, _racked_clusters)), st.integers(1, 30))
def test_added_partitions_continue_the_round(
    task: tuple[Mapping[int, str | None], int, int, random.Random], added: int
) -> None:
    racks, count, replication_factor, generator = task
    old = place_replicas(racks, count, replication_factor, generator)
    partitions = range(count, count + added)
    new = place_added_replicas(racks, old[0], partitions, replication_factor, generator)
    assert len(new) == added
    assert _spread(Counter(replicas[0] for replicas in [*old, *new]), racks) <= 1
    for replicas in new:
        assert len(replicas) == len(set(replicas)) == replication_factor


def test_added_partitions_are_placed_also_if_the_first_broker_is_gone() -> None:
    new = place_added_replicas({1: None, 2: None}, (9,), range(1, 5), 1, random.Random(0))
    assert sorted(new) == [(1,), (1,), (2,), (2,)]
