"""The steps by which a partition moves to other brokers, and what they wait for."""

import pytest

from headwater.cluster.image.image import NO_LEADER, PartitionImage
from headwater.cluster.reassignment.steps import leaving, next_state, turned_to

LIVE = frozenset(range(1, 7))


def moving(
    origin: tuple[int, ...],
    target: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int | None = None,
) -> PartitionImage:
    first = origin[0] if leader is None else leader
    turned = turned_to(PartitionImage(origin, isr, first, 5, 8), target)
    assert turned is not None
    return turned


def step(
    partition: PartitionImage, live: frozenset[int] = LIVE, min_isr: int = 1
) -> PartitionImage | None:
    return next_state(partition, live, live, min_isr)


def test_a_move_begins_with_all_replicas_the_target_first() -> None:
    partition = moving((1, 2, 3), (4, 3, 5), (1, 2, 3))
    assert partition == PartitionImage((4, 3, 5, 1, 2), (1, 2, 3), 1, 5, 9, (4, 5), (1, 2))
    assert partition.target == (4, 3, 5)
    assert set(partition.origin) == {1, 2, 3}
    assert turned_to(partition, (4, 3, 5)) is None


def test_a_move_ends_when_the_whole_target_is_in_sync_and_lives() -> None:
    partition = moving((1, 2), (3, 4), (1, 2, 3))
    assert step(partition) is None
    arrived = partition._replace(isr=(1, 2, 3, 4))
    assert step(arrived, LIVE - {4}) is None
    # The first live replica of the new list that is in sync leads.
    assert step(arrived) == PartitionImage((3, 4), (3, 4), 3, 6, 10)


def test_a_leader_that_stays_goes_on_leading_in_its_epoch() -> None:
    partition = moving((1, 2), (3, 1), (1, 2, 3))
    assert step(partition) == PartitionImage((3, 1), (1, 3), 1, 5, 10)


def test_nobody_who_stops_is_elected() -> None:
    partition = moving((1, 2), (3, 4), (1, 2, 3, 4))
    assert next_state(partition, LIVE, LIVE - {3}, 1) == PartitionImage((3, 4), (3, 4), 4, 6, 10)
    assert next_state(partition, LIVE, LIVE - {3, 4}, 1) is None


def test_a_new_order_needs_no_waiting() -> None:
    partition = PartitionImage((1, 2), (1,), 1, 5, 8)
    assert turned_to(partition, (2, 1)) == PartitionImage((2, 1), (1,), 1, 5, 9)


def test_more_replicas_take_nobody_away() -> None:
    partition = moving((1,), (1, 2, 3), (1, 2))
    assert step(partition) is None
    assert step(partition._replace(isr=(1, 2, 3))) == PartitionImage((1, 2, 3), (1, 2, 3), 1, 5, 10)


def test_whoever_is_left_alone_leads_first_and_has_asked_to_be_alone() -> None:
    partition = moving((1, 2), (3,), (1, 2, 3))
    led = step(partition)
    assert led is not None
    assert (led.leader, led.isr, led.replicas) == (3, (1, 2, 3), (3, 1, 2))
    assert step(led) is None
    assert leaving(led, LIVE, 1) == {1, 2}
    assert step(led._replace(isr=(3,))) == PartitionImage((3,), (3,), 3, 6, 11)


def test_another_target_gives_up_the_one_before() -> None:
    partition = moving((1, 2), (3, 4), (1, 2, 3))
    turned = turned_to(partition, (5, 2))
    assert turned is not None
    assert set(turned.adding) == {5, 3, 4}
    assert set(turned.removing) == {1, 3, 4}
    assert step(turned) == turned._replace(
        replicas=(5, 2, 1), isr=(1, 2), adding=(5,), removing=(1,), partition_epoch=11
    )


def test_a_cancelled_move_goes_back_at_once_where_it_can() -> None:
    partition = moving((1, 2), (3, 4), (1, 2, 3))
    back = turned_to(partition, partition.origin)
    assert back is not None
    assert step(back) == PartitionImage((1, 2), (1, 2), 1, 5, 11)
    # Its leader may be one of those that are given up.
    assert step(back._replace(leader=3)) == PartitionImage((1, 2), (1, 2), 1, 6, 11)
    assert step(back._replace(leader=NO_LEADER)) == PartitionImage((1, 2), (1, 2), 1, 6, 11)


def test_a_cancelled_move_waits_for_somebody_of_the_old_replicas() -> None:
    partition = moving((1, 2), (3, 4), (3, 4), leader=3)
    back = turned_to(partition, partition.origin)
    assert back is not None
    assert step(back) is None
    assert step(back._replace(isr=(3, 4, 1)), LIVE - {1}) is None
    # One alone: it leads first.
    led = step(back._replace(isr=(3, 4, 1)))
    assert led is not None
    assert (led.leader, led.isr) == (1, (3, 4, 1))
    assert step(led._replace(isr=(1,))) == PartitionImage((1, 2), (1,), 1, 6, 12)


@pytest.mark.parametrize(
    ("isr", "min_isr", "may_go"),
    [((1, 3), 2, False), ((1, 3), 1, True), ((1, 2, 3), 2, True), ((1, 3, 4), 3, False)],
)
def test_a_cancelled_move_leaves_as_many_in_sync_as_are_asked_for(
    isr: tuple[int, ...], min_isr: int, may_go: bool
) -> None:
    partition = moving((1, 2), (3, 4), isr)
    back = turned_to(partition, partition.origin)
    assert back is not None
    assert bool(leaving(back, LIVE, min_isr)) is may_go


def test_a_move_that_is_cancelled_twice_is_no_other() -> None:
    partition = moving((1, 2), (3, 4), (3, 4), leader=3)
    back = turned_to(partition, partition.origin)
    assert back is not None
    assert turned_to(back, back.origin) is None
    # And it can still be turned around again.
    again = turned_to(back, (3, 4))
    assert again is not None
    assert again.target == (3, 4)
    assert step(again) == PartitionImage((3, 4), (3, 4), 3, 5, 12)


def test_a_throttle_ends_with_a_cancelled_move_though_its_origin_is_not_in_sync() -> None:
    moved = turned_to(PartitionImage((1, 2, 3), (1, 2), 1, 5, 8), (4, 2, 3), 500)
    assert moved is not None
    cancelled = turned_to(moved, moved.origin)
    assert cancelled is not None
    assert (cancelled.adding, cancelled.removing, cancelled.throttle) == ((4,), (4,), 500)
    # What was given up can be spared; that broker 3 has yet to catch up is no part of the move.
    assert step(cancelled) == PartitionImage((2, 3, 1), (1, 2), 1, 5, 11)
