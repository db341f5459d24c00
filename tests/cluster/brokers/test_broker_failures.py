"""What becomes of a partition when brokers fail and come back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.brokers.failures import BrokerTurnover
from headwater.cluster.image.image import NO_LEADER, PartitionImage


def _partition(
    isr: list[int], leader: int, replicas: tuple[int, ...] = (0, 1, 2)
) -> PartitionImage:
    return PartitionImage(replicas, tuple(isr), leader, 4, 9)


def _turnover(
    live: set[int],
    *,
    restarted: tuple[int, ...] = (),
    unclean: tuple[int, ...] = (),
    shutting_down: tuple[int, ...] = (),
) -> BrokerTurnover:
    return BrokerTurnover(
        frozenset(live), frozenset(restarted), frozenset(unclean), frozenset(shutting_down)
    )


ALL = {0, 1, 2}


@pytest.mark.parametrize(
    ("before", "turnover", "leader", "isr"),
    [
        # A leader fails, a leader and a follower, all: those who are gone still have everything.
        (_partition([0, 1, 2], 0), _turnover({1, 2}), 1, [0, 1, 2]),
        (_partition([0, 1, 2], 0), _turnover({2}), 2, [0, 1, 2]),
        (_partition([0, 1], 0), _turnover({1, 2}), 1, [0, 1]),
        (_partition([0, 1, 2], 0), _turnover(set()), NO_LEADER, [0, 1, 2]),
        # The only one in sync stays so.
        (_partition([1], 1), _turnover({0, 2}), NO_LEADER, [1]),
        # One of those that were in sync at the end is back.
        (_partition([0, 1, 2], NO_LEADER), _turnover({2}), 2, [0, 1, 2]),
        (_partition([1], NO_LEADER), _turnover(ALL), 1, [1]),
        # A quick restart is a failure and a return.
        (_partition([0, 1, 2], 0), _turnover(ALL, restarted=(0,)), 1, [0, 1, 2]),
        (_partition([0, 1], 0), _turnover(ALL, restarted=(0,)), 1, [0, 1]),
        (_partition([0, 1], 0), _turnover(ALL, restarted=(0, 1)), 0, [0, 1]),
        (_partition([0], 0), _turnover(ALL, restarted=(0,)), 0, [0]),
        # Whoever comes back unclean leads only if nobody else had everything.
        (_partition([0, 1, 2], 0), _turnover(ALL, unclean=(0,)), 1, [1, 2]),
        (_partition([0, 1, 2], 0), _turnover({0}, unclean=(0,)), NO_LEADER, [1, 2]),
        (_partition([0, 1], NO_LEADER), _turnover({0, 2}, unclean=(0,)), NO_LEADER, [1]),
        (_partition([0], 0), _turnover(ALL, unclean=(0,)), 0, [0]),
        (_partition([0, 1, 2], 2), _turnover(ALL, unclean=(0, 1, 2)), 2, [2]),
        (_partition([2, 1], NO_LEADER), _turnover(ALL, unclean=(0, 1, 2)), 1, [1]),
        # Whoever is about to stop leads nothing new, but keeps what it has.
        (_partition([0, 1, 2], 0), _turnover({1, 2}, shutting_down=(1,)), 2, [0, 1, 2]),
        (_partition([0, 1], 0), _turnover({1, 2}, shutting_down=(1,)), NO_LEADER, [0, 1]),
    ],
)
def test_leader_and_isr_after_a_change(
    before: PartitionImage, turnover: BrokerTurnover, leader: int, isr: list[int]
) -> None:
    assert turnover.concerns(before)
    after = turnover.plan(before, unclean_allowed=False)
    assert after is not None
    assert (after.leader, list(after.isr)) == (leader, isr)
    led_anew = leader != before.leader or leader in turnover.restarted | turnover.unclean
    assert after.leader_epoch == before.leader_epoch + led_anew
    assert after.partition_epoch == before.partition_epoch + 1


@pytest.mark.parametrize(
    ("before", "turnover"),
    [
        (_partition([0, 1], 0), _turnover(ALL)),
        (_partition([0, 1], 0), _turnover({0, 1}, restarted=(2,), unclean=(2,))),
        (_partition([1], NO_LEADER), _turnover({0, 2})),
        # Who is gone stays, until the leader asks for another ISR.
        (_partition([0, 1], 0), _turnover({0, 2})),
        (_partition([0, 1, 2], 0), _turnover({0, 2})),
        (_partition([2, 1, 0], 0), _turnover({0, 1}, restarted=(1,))),
        (_partition([0, 1], 0), _turnover(ALL, restarted=(1,))),
        (_partition([0, 1], 0), _turnover({0}, shutting_down=(0,))),
        (_partition([0, 1], NO_LEADER), _turnover(set())),
    ],
)
def test_what_is_as_it_should_be_stays(before: PartitionImage, turnover: BrokerTurnover) -> None:
    assert turnover.plan(before, unclean_allowed=False) is None


def test_an_unclean_election_happens_where_it_is_allowed() -> None:
    before = _partition([1], 1)
    after = _turnover({0, 2}).plan(before, unclean_allowed=True)
    assert after == PartitionImage((0, 1, 2), (0,), 0, 5, 10)
    # The former leader comes back as a follower.
    assert after is not None and _turnover(ALL).plan(after, unclean_allowed=True) is None


brokers = st.sampled_from(range(4))


@st.composite
def _turnovers(draw: st.DrawFn) -> BrokerTurnover:
    live = draw(st.frozensets(brokers))
    some = st.frozensets(st.sampled_from(sorted(live))) if live else st.just(frozenset[int]())
    restarted, unclean = draw(some), draw(some)
    # Whoever is new has not been asked to stop yet.
    return BrokerTurnover(live, restarted, unclean, draw(some) - restarted - unclean)


@given(st.lists(brokers, min_size=1, unique=True), st.data(), st.booleans())
def test_the_plan_is_sound_and_settles(
    replicas: list[int], data: st.DataObject, unclean_allowed: bool
) -> None:
    isr = data.draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = data.draw(st.sampled_from([NO_LEADER, *isr]))
    before = _partition(isr, leader, tuple(replicas))
    turnover = data.draw(_turnovers())
    after = turnover.plan(before, unclean_allowed=unclean_allowed)
    if after is None:
        after = before
    else:
        assert turnover.concerns(before)
        assert after.partition_epoch == before.partition_epoch + 1
    assert after.isr and set(after.isr) <= set(replicas)
    assert after.leader == NO_LEADER or after.leader in turnover.live
    assert after.leader in (NO_LEADER, *after.isr)
    if after.leader != before.leader:
        assert after.leader_epoch == before.leader_epoch + 1
    # The controller takes nobody out of the ISR who may have what the others have lost.
    if not unclean_allowed or after.leader in {NO_LEADER, *isr} - turnover.unclean:
        assert set(after.isr) >= set(isr) - turnover.unclean
    if after.leader != NO_LEADER and after.leader not in before.isr:
        assert unclean_allowed
        assert (turnover.electable - turnover.unclean).isdisjoint(before.isr)
    # Nobody who may lack something leads while another had everything.
    if after.leader in turnover.unclean and not unclean_allowed:
        assert set(before.isr) <= turnover.unclean
    # Done once, nothing is left to do.
    settled = replace(turnover, restarted=frozenset(), unclean=frozenset())
    assert settled.plan(after, unclean_allowed=unclean_allowed) is None
