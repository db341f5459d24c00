"""Two-phase commit (KIP-939): prepared transactions wait, and a new instance ends them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.base.errors import ErrorCode
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    NO_TIMEOUT_MS,
    TransactionState,
)
from tests.support.worlds.transaction_world import ID, TIMEOUT_MS, TransactionWorld, code_of, orders


def prepared_by(world: TransactionWorld) -> ProducerIdentity:
    """A participant that has written all it wanted, and then died."""
    old = world.init(two_phase=True)
    world.add(old, 1, 2)
    return old


def test_it_has_to_be_enabled() -> None:
    world = TransactionWorld()
    world.settings.booleans["transaction.two.phase.commit.enable"] = False
    answer = world.ask_init(two_phase=True)
    assert code_of(answer) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_its_transactions_have_no_timeout() -> None:
    world = TransactionWorld()
    world.look_seldom()
    old = world.init(two_phase=True, timeout_ms=0)
    assert world.metadata.timeout_ms == NO_TIMEOUT_MS
    world.add(old, 1)
    world.world.advance(30 * 24 * 3_600_000)
    assert world.metadata.state is TransactionState.ONGOING
    world.end(old, commit=True)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("failover", [True, False])
def test_a_new_instance_ends_what_the_old_one_prepared(commit: bool, failover: bool) -> None:
    world = TransactionWorld()
    old = prepared_by(world)
    answer = world.ask_init(two_phase=True, keep=True).get()
    assert answer.ongoing == old
    new = answer.producer
    assert new == old._replace(producer_epoch=1)
    assert world.metadata.state is TransactionState.ONGOING
    if failover:
        world.replace_coordinator()
    following = world.end(new, commit=commit)
    assert following == old._replace(producer_epoch=2)
    prepared = world.prepared[-1]
    assert prepared.is_commit is commit
    assert prepared.partitions == orders(1, 2)
    # The markers fence the producer that wrote the records.
    assert prepared.producer == old._replace(producer_epoch=1)
    if failover:
        world.replace_coordinator()
    world.write_last_markers()
    assert world.metadata.producer == following
    assert world.end(new, commit=commit) == following
    world.add(following, 5)
    world.world.check_replay()


def test_the_old_instance_is_fenced_and_the_new_one_can_only_end() -> None:
    world = TransactionWorld()
    old = prepared_by(world)
    new = world.init(two_phase=True, keep=True)
    assert code_of(world.ask_add(old, orders(1))) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.ask_add(new, orders(1))) is ErrorCode.INVALID_TXN_STATE
    assert code_of(world.ask_end(old, commit=True)) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.ask_init(expected=old)) is ErrorCode.PRODUCER_FENCED
    assert world.metadata.state is TransactionState.ONGOING


def test_it_may_be_kept_again_and_again() -> None:
    world = TransactionWorld()
    old = prepared_by(world)
    for epoch in range(1, 5):
        answer = world.ask_init(two_phase=True, keep=True).get()
        assert answer.ongoing == old
        assert answer.producer == old._replace(producer_epoch=epoch)
        world.replace_coordinator()
    before = old._replace(producer_epoch=3)
    assert code_of(world.ask_end(before, commit=True)) is ErrorCode.PRODUCER_FENCED
    world.end(answer.producer, commit=True)


def test_without_an_open_transaction_there_is_nothing_to_keep() -> None:
    world = TransactionWorld()
    answer = world.ask_init(two_phase=True, keep=True).get()
    assert answer.ongoing is None
    world.add(answer.producer, 1)
    world.end(answer.producer, commit=True)
    waiting = world.ask_init(two_phase=True, keep=True)
    assert code_of(waiting) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert world.ask_init(two_phase=True, keep=True).get().ongoing is None


def test_who_recovers_does_not_keep() -> None:
    world = TransactionWorld()
    old = prepared_by(world)
    answer = world.ask_init(two_phase=True, keep=True, expected=old)
    assert code_of(answer) is ErrorCode.INVALID_REQUEST


def test_an_instance_that_does_not_keep_aborts() -> None:
    world = TransactionWorld()
    old = prepared_by(world)
    new = world.init(two_phase=True, keep=True)
    assert code_of(world.ask_init(two_phase=True)) is ErrorCode.CONCURRENT_TRANSACTIONS
    prepared = world.prepared[-1]
    assert not prepared.is_commit
    assert prepared.producer == old._replace(producer_epoch=1)
    assert code_of(world.ask_end(new, commit=True)) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert code_of(world.ask_end(new, commit=True)) is ErrorCode.INVALID_TXN_STATE
    assert world.init(two_phase=True) == old._replace(producer_epoch=3)
    assert code_of(world.ask_end(new, commit=False)) is ErrorCode.PRODUCER_FENCED


def test_what_is_kept_may_wait_for_as_long_as_before() -> None:
    world = TransactionWorld()
    prepared_by(world)
    new = world.init(keep=True, timeout_ms=1)
    world.world.advance(TIMEOUT_MS)
    assert world.metadata.state is TransactionState.ONGOING
    world.end(new, commit=True)


def test_what_is_kept_without_two_phases_still_has_its_timeout() -> None:
    world = TransactionWorld()
    old = world.init()
    world.add(old, 1)
    world.init(keep=True)
    world.world.advance(TIMEOUT_MS * 2)
    assert world.metadata.state is TransactionState.PREPARE_ABORT


@pytest.mark.parametrize("keeps", [1, 2])
def test_epochs_run_out_while_a_transaction_is_kept(keeps: int) -> None:
    world = TransactionWorld()
    world.init(two_phase=True)
    old = ProducerIdentity(7, CLIENT_EPOCH_MAX - 1)
    world = TransactionWorld(stored={ID: replace(world.metadata, producer=old)})
    world.add(old, 1)
    for _ in range(keeps):
        answer = world.ask_init(two_phase=True, keep=True).get()
        assert answer.ongoing == old
    new = answer.producer
    assert new == (old._replace(producer_epoch=CLIENT_EPOCH_MAX), (1000, 0))[keeps - 1]
    following = world.end(new, commit=True)
    assert following == ((1000, 0), (1000, 1))[keeps - 1]
    assert world.prepared[-1].producer == old._replace(producer_epoch=CLIENT_EPOCH_MAX)
    world.replace_coordinator()
    world.write_last_markers()
    assert world.end(new, commit=True) == following
    world.add(following, 1)


def test_a_client_of_the_first_version_ends_it_too() -> None:
    world = TransactionWorld()
    old = prepared_by(world)
    new = world.init(two_phase=True, keep=True)
    assert world.end(new, commit=True, version=0) == new
    assert world.prepared[-1].producer == old
    world.write_last_markers()
    assert world.metadata.producer == new
