"""Where the partitions of a canary are: each broker leads one."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.audit.canary.layout import Place, assignments_for, min_in_sync, to_elect


@given(st.sets(st.integers(0, 20), min_size=1), st.sets(st.integers(0, 20), min_size=1))
def test_each_broker_prefers_to_lead_one_partition_however_the_cluster_grows(
    first: set[int], second: set[int]
) -> None:
    places: list[Place] = []
    for brokers in (first, first | second):
        for replicas in assignments_for(brokers, places):
            assert len(set(replicas)) == len(replicas)
            assert set(replicas) <= brokers
            places.append(Place(len(places), replicas[0], replicas, replicas))
        assert assignments_for(brokers, places) == []
    preferred = [place.replicas[0] for place in places]
    assert sorted(preferred) == sorted(first | second)
    assert len({len(place.replicas) for place in places}) == 1


def test_with_too_few_brokers_for_its_replicas_nothing_is_added() -> None:
    known = [Place(0, 1, [1, 2, 3], [1, 2, 3])]
    assert assignments_for([4, 5], known) == []


def test_a_partition_is_led_by_the_broker_it_was_made_for_if_that_can() -> None:
    places = [
        Place(0, 1, [1, 2], [1, 2]),
        Place(1, 1, [2, 1], [1, 2]),
        Place(2, 1, [3, 1], [1]),
        Place(3, 1, [4, 1], [1, 4]),
        Place(4, -1, [], []),
    ]
    assert to_elect([1, 2, 3], places) == [1]


def test_one_replica_may_be_away() -> None:
    assert [min_in_sync(range(count)) for count in (1, 2, 3, 9)] == [1, 1, 2, 2]
