"""EndTxn: PREPARE, markers, COMPLETE, in both transaction versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.base.errors import ErrorCode
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    TransactionState,
)
from tests.support.worlds.transaction_world import ID, TransactionWorld, code_of, decoded, orders

_FENCED = ErrorCode.PRODUCER_FENCED
_INVALID = ErrorCode.INVALID_TXN_STATE


def states_written(world: TransactionWorld) -> list[str]:
    written = [decoded(record) for record in world.safe_records]
    return [metadata.state.label for metadata in written if metadata is not None]


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_the_order_is_prepare_then_markers_then_complete(version: int, commit: bool) -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1, 2, version=version)
    world.end(producer, commit=commit, version=version)
    outcome = "Commit" if commit else "Abort"
    assert states_written(world) == ["Empty", "Ongoing", f"Prepare{outcome}"]
    (prepared,) = world.prepared
    assert prepared.is_commit is commit
    assert prepared.partitions == orders(1, 2)
    assert prepared.coordinator_epoch == world.coordinator_epoch
    assert world.metadata.partitions == orders(1, 2)
    assert world.write_markers(prepared)
    assert states_written(world)[3:] == [f"Complete{outcome}"]
    assert world.metadata.partitions == orders()
    assert not world.write_markers(prepared)
    world.world.check_replay()


def test_in_the_first_version_all_transactions_have_one_epoch() -> None:
    world = TransactionWorld()
    producer = world.init()
    for _ in range(2):
        world.add(producer, 1, version=0)
        assert world.end(producer, commit=True, version=0) == producer
        assert world.prepared[-1].producer == producer
        world.write_last_markers()


def test_in_the_second_version_each_transaction_has_its_own_epoch() -> None:
    world = TransactionWorld()
    producer = world.init()
    for epoch in (1, 2):
        world.add(producer, 1)
        producer = world.end(producer, commit=True)
        assert producer.producer_epoch == epoch
        assert world.prepared[-1].producer == producer
        world.write_last_markers()


@pytest.mark.parametrize("version", [0, 2])
def test_an_end_that_comes_again(version: int) -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1, version=version)
    following = world.end(producer, commit=True, version=version)
    for commit in (True, False):
        answer = world.ask_end(producer, commit=commit, version=version)
        assert code_of(answer) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert world.end(producer, commit=True, version=version) == following
    assert code_of(world.ask_end(producer, commit=False, version=version)) is _INVALID
    world.replace_coordinator()
    assert world.end(producer, commit=True, version=version) == following
    assert len(world.prepared) == 1


def test_a_late_end_does_not_hit_the_next_transaction() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    following = world.end(producer, commit=True)
    world.write_last_markers()
    world.add(following, 2)
    assert code_of(world.ask_end(producer, commit=True)) is _FENCED
    assert world.metadata.state is TransactionState.ONGOING


@pytest.mark.parametrize("commit", [True, False])
def test_in_the_first_version_there_must_be_a_transaction(commit: bool) -> None:
    world = TransactionWorld()
    producer = world.init()
    assert code_of(world.ask_end(producer, commit=commit, version=0)) is _INVALID


#: What the second version says where no transaction is open: to a request that comes again, and to
#: one of the present epoch; None stands for an answer without a new epoch, True for one with it.
_IDLE_TABLE = {
    (TransactionState.EMPTY, False): (_FENCED, True),
    (TransactionState.EMPTY, True): (_FENCED, _INVALID),
    (TransactionState.COMPLETE_ABORT, False): (None, True),
    (TransactionState.COMPLETE_ABORT, True): (_INVALID, _INVALID),
    (TransactionState.COMPLETE_COMMIT, False): (_INVALID, True),
    (TransactionState.COMPLETE_COMMIT, True): (None, _INVALID),
}


@pytest.mark.parametrize(("state", "commit"), list(_IDLE_TABLE))
@pytest.mark.parametrize("is_repeated", [True, False])
def test_the_table_of_ends_without_a_transaction(
    state: TransactionState, commit: bool, is_repeated: bool
) -> None:
    world = TransactionWorld()
    before = world.init()
    if state is TransactionState.EMPTY:
        present = world.init(expected=before)
    else:
        world.add(before, 1)
        present = world.end(before, commit=state is TransactionState.COMPLETE_COMMIT)
        world.write_last_markers()
    assert world.metadata.state is state
    expected = _IDLE_TABLE[state, commit][0 if is_repeated else 1]
    answer = world.ask_end(before if is_repeated else present, commit=commit)
    if expected is None:
        assert answer.get() == present
    elif expected is True:
        assert answer.get() == present._replace(producer_epoch=present.producer_epoch + 1)
    else:
        assert code_of(answer) is expected


def test_an_abort_without_partitions_is_complete_at_once() -> None:
    world = TransactionWorld()
    producer = world.init()
    following = world.end(producer, commit=False)
    assert following == producer._replace(producer_epoch=1)
    assert states_written(world) == ["Empty", "PrepareAbort", "CompleteAbort"]
    assert world.prepared == []
    assert world.end(producer, commit=False) == following


def test_a_client_of_the_new_epoch_waits_for_the_markers_of_the_last() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    following = world.end(producer, commit=True)
    answer = world.ask_end(following, commit=False)
    assert code_of(answer) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert world.end(following, commit=False) == following._replace(producer_epoch=2)


def test_when_epochs_run_out_the_next_transaction_has_a_new_producer_id() -> None:
    world = TransactionWorld()
    world.init()
    last = ProducerIdentity(7, CLIENT_EPOCH_MAX)
    world = TransactionWorld(stored={ID: replace(world.metadata, producer=last)})
    world.add(last, 1)
    following = world.end(last, commit=True)
    assert following.producer_epoch == 0
    assert following.producer_id != last.producer_id
    # The markers are still those of the old id, with the epoch that no client ever had.
    assert world.prepared[-1].producer == ProducerIdentity(7, CLIENT_EPOCH_MAX + 1)
    assert code_of(world.ask_end(last, commit=True)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(world.ask_add(following, orders(1))) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.replace_coordinator()
    assert world.prepared[-1].producer == ProducerIdentity(7, CLIENT_EPOCH_MAX + 1)
    world.write_last_markers()
    assert world.metadata.producer == following
    assert world.end(last, commit=True) == following
    world.add(following, 1)
    assert code_of(world.ask_end(last, commit=True)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_who_may_not_end() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stranger = producer._replace(producer_id=5)
    for version in (0, 2):
        assert code_of(world.ask_end(stranger, commit=True, version=version)) is mapping
        newer = producer._replace(producer_epoch=5)
        assert code_of(world.ask_end(newer, commit=True, version=version)) is _FENCED
        unknown = world.ask_end(producer, commit=True, version=version, transactional_id="x")
        assert code_of(unknown) is mapping
        empty = world.ask_end(producer, commit=True, version=version, transactional_id="")
        assert code_of(empty) is ErrorCode.INVALID_REQUEST
    assert world.metadata.state is TransactionState.ONGOING
