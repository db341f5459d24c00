"""Markers are asked for when the decision is safe, and by every coordinator that finds it."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.txn.transaction_metadata import TransactionState
from tests.support.worlds.transaction_world import TransactionWorld, code_of, orders

_NOT_SAFE = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_nothing_is_handed_out_before_the_decision_is_safe() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.hold()
    answer = world.ask_end(producer, commit=True)
    assert not answer.is_given
    assert world.prepared == []
    world.release()
    assert answer.is_given
    assert len(world.prepared) == 1


def test_a_decision_that_takes_too_long_to_be_safe_is_waited_for() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.hold()
    answer = world.ask_end(producer, commit=True)
    world.world.lose(_NOT_SAFE)
    assert code_of(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.world.advance(1500)
    world.world.lose(_NOT_SAFE)
    world.world.advance(1500)
    assert world.prepared == []
    world.release()
    assert len(world.prepared) == 1
    world.write_last_markers()
    assert world.metadata.state is TransactionState.COMPLETE_COMMIT


def test_a_decision_that_was_not_written_is_none() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.world.fail_next = _NOT_SAFE
    assert code_of(world.ask_end(producer, commit=True)) is _NOT_SAFE.code
    world.world.advance(5000)
    assert world.prepared == []
    world.end(producer, commit=False)
    assert [prepared.is_commit for prepared in world.prepared] == [False]


def test_waiting_for_a_decision_that_was_not_written_does_not_make_the_next_one_safe() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.world.fail_next = _NOT_SAFE
    world.ask_end(producer, commit=True)
    world.hold()
    world.world.advance(1500)
    other = world.ask_init("other")
    world.ask_end(producer, commit=True)
    was_safe: list[bool] = []
    world.on_markers = lambda _: was_safe.append(other.is_given)
    world.release()
    assert was_safe == [True]


def test_an_empty_abort_does_not_make_the_next_decision_safe() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.hold()
    world.ask_end(producer, commit=False)
    following = world.metadata.client
    added = world.ask_add(following, orders(1))
    world.ask_end(following, commit=True)
    was_safe: list[bool] = []
    world.on_markers = lambda _: was_safe.append(added.is_given)
    world.release()
    assert was_safe == [True]


def test_the_next_coordinator_hands_out_again_with_its_own_epoch() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.end(producer, commit=True)
    world.replace_coordinator()
    old, new = world.prepared
    assert new._replace(coordinator_epoch=1) == old
    assert new.coordinator_epoch == 2
    assert not world.write_markers(old)
    assert world.write_markers(new)


def test_late_markers_do_not_complete_the_next_transaction_of_the_same_epoch() -> None:
    world = TransactionWorld()
    producer = world.init()
    for _ in range(2):
        world.add(producer, 1, version=0)
        world.end(producer, commit=True, version=0)
        if len(world.prepared) == 1:
            world.write_last_markers()
    first, second = world.prepared
    assert not world.write_markers(first)
    assert world.metadata.state is TransactionState.PREPARE_COMMIT
    assert world.write_markers(second)


def test_a_completion_that_was_not_written_is_tried_again() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.end(producer, commit=True)
    world.world.fail_next = _NOT_SAFE
    answer = world.world.write(
        lambda shard, now_ms: shard.markers_written(world.prepared[0], now_ms)
    )
    assert code_of(answer) is _NOT_SAFE.code
    assert world.write_markers(world.prepared[0])
