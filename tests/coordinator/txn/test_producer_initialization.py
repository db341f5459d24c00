"""InitProducerId of transactional producers: ids, epochs, fencing, recovery, timeouts."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    TransactionMetadata,
    TransactionState,
)
from tests.support.worlds.transaction_world import ID, TIMEOUT_MS, TransactionWorld, code_of, orders


def world_at(epoch: int, state: TransactionState = TransactionState.EMPTY) -> TransactionWorld:
    """A world in which the one producer has come to this epoch."""
    metadata = TransactionMetadata(
        transactional_id=ID,
        producer=ProducerIdentity(7, epoch),
        timeout_ms=TIMEOUT_MS,
        state=state,
        last_update_ms=0,
    )
    return TransactionWorld(stored={ID: metadata})


def test_a_new_id_gets_a_producer_at_its_first_epoch() -> None:
    world = TransactionWorld()
    assert world.init() == ProducerIdentity(1000, 0)
    assert world.init("other") == ProducerIdentity(1001, 0)
    assert world.metadata.state is TransactionState.EMPTY
    assert world.metadata.timeout_ms == TIMEOUT_MS
    world.world.check_replay()


def test_each_instance_fences_those_before_it() -> None:
    world = TransactionWorld()
    first = world.init()
    second = world.init()
    assert second == first._replace(producer_epoch=1)
    assert code_of(world.ask_add(first, orders(1))) is ErrorCode.PRODUCER_FENCED
    world.add(second, 1)
    assert code_of(world.ask_end(first, commit=True)) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.ask_end(first, commit=True, version=0)) is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_recovers_gets_the_next_epoch() -> None:
    world = TransactionWorld()
    first = world.init()
    assert world.init(expected=first) == first._replace(producer_epoch=1)


def test_a_recovery_that_comes_again_gets_the_same_answer_also_after_a_failover() -> None:
    world = TransactionWorld()
    first = world.init()
    recovered = world.init(expected=first)
    assert world.init(expected=first) == recovered
    world.replace_coordinator()
    assert world.init(expected=first) == recovered


def test_a_producer_that_was_fenced_does_not_recover() -> None:
    world = TransactionWorld()
    first = world.init()
    second = world.init()
    assert code_of(world.ask_init(expected=first)) is ErrorCode.PRODUCER_FENCED
    stranger = ProducerIdentity(55, 0)
    assert code_of(world.ask_init(expected=stranger)) is ErrorCode.PRODUCER_FENCED
    assert world.metadata.client == second


def test_a_producer_whose_id_has_expired_gets_a_new_one() -> None:
    world = TransactionWorld()
    assert world.init(expected=ProducerIdentity(55, 4)) == ProducerIdentity(1000, 0)


def test_a_late_recovery_does_not_abort_what_began_since() -> None:
    world = TransactionWorld()
    first = world.init()
    recovered = world.init(expected=first)
    world.add(recovered, 1)
    assert code_of(world.ask_init(expected=first)) is ErrorCode.PRODUCER_FENCED
    assert world.metadata.state is TransactionState.ONGOING
    world.end(recovered, commit=True, version=0)
    world.write_last_markers()
    assert code_of(world.ask_init(expected=first)) is ErrorCode.PRODUCER_FENCED
    assert world.metadata.state.label == "CompleteCommit"


@pytest.mark.parametrize("recovers", [False, True])
def test_when_epochs_run_out_there_is_a_new_producer_id(recovers: bool) -> None:
    world = world_at(CLIENT_EPOCH_MAX)
    last = ProducerIdentity(7, CLIENT_EPOCH_MAX)
    expected = last if recovers else None
    assert world.init(expected=expected) == ProducerIdentity(1000, 0)
    if recovers:
        assert world.init(expected=last) == ProducerIdentity(1000, 0)
    else:
        assert code_of(world.ask_init(expected=last)) is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_was_fenced_with_the_last_epoch_recovers_with_a_new_id() -> None:
    world = world_at(CLIENT_EPOCH_MAX)
    last = ProducerIdentity(7, CLIENT_EPOCH_MAX)
    world.add(last, 1)
    world.world.advance(TIMEOUT_MS * 2)
    world.write_last_markers()
    assert world.metadata.producer.producer_epoch == CLIENT_EPOCH_MAX + 1
    # Nobody may go on with the epoch that is only there to fence.
    assert code_of(world.ask_end(last, commit=False)) is ErrorCode.PRODUCER_FENCED
    made_up = ProducerIdentity(7, CLIENT_EPOCH_MAX + 1)
    assert code_of(world.ask_add(made_up, orders(1))) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.ask_end(made_up, commit=False)) is ErrorCode.PRODUCER_FENCED
    assert world.init(expected=last) == ProducerIdentity(1000, 0)
    assert world.init(expected=last) == ProducerIdentity(1000, 0)


def test_an_open_transaction_is_aborted_first() -> None:
    world = TransactionWorld()
    old = world.init()
    world.add(old, 1, 2)
    assert code_of(world.ask_init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.metadata.state is TransactionState.PREPARE_ABORT
    (prepared,) = world.prepared
    assert not prepared.is_commit
    assert prepared.partitions == orders(1, 2)
    assert prepared.producer == old._replace(producer_epoch=1)
    assert code_of(world.ask_init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert world.init() == old._replace(producer_epoch=2)
    assert len(world.prepared) == 1


def test_a_fence_at_the_last_epoch_leaves_room_for_a_new_id() -> None:
    world = world_at(CLIENT_EPOCH_MAX)
    world.add(ProducerIdentity(7, CLIENT_EPOCH_MAX), 1)
    assert code_of(world.ask_init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert world.init() == ProducerIdentity(1000, 0)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_out_of_bounds_are_refused(timeout_ms: int) -> None:
    answer = TransactionWorld().ask_init(timeout_ms=timeout_ms)
    assert code_of(answer) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_the_longest_timeout_is_a_setting() -> None:
    world = TransactionWorld()
    world.settings.integers["transaction.max.timeout.ms"] = 5
    assert code_of(world.ask_init(timeout_ms=6)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    world.init(timeout_ms=5)
    assert world.metadata.timeout_ms == 5


def test_an_empty_id_is_refused() -> None:
    assert code_of(TransactionWorld().ask_init("")) is ErrorCode.INVALID_REQUEST


def test_the_answer_comes_when_the_epoch_is_safe() -> None:
    world = TransactionWorld()
    world.hold()
    answer = world.ask_init()
    assert not answer.is_given
    world.release()
    assert answer.get().producer == ProducerIdentity(1000, 0)
