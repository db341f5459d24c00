"""Timeouts abort, and ids that nobody uses are forgotten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import TransactionState
from tests.support.worlds.transaction_world import (
    EXPIRY_MS,
    EXPIRY_SCAN_MS,
    ID,
    SCAN_MS,
    TIMEOUT_MS,
    TransactionWorld,
    code_of,
    orders,
)


def test_a_transaction_that_takes_too_long_is_aborted_at_the_next_look() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.world.advance(TIMEOUT_MS)
    assert world.metadata.state is TransactionState.ONGOING
    world.world.advance(SCAN_MS)
    (prepared,) = world.prepared
    assert not prepared.is_commit
    assert prepared.producer == producer._replace(producer_epoch=1)
    assert code_of(world.ask_add(producer, orders(2))) is ErrorCode.PRODUCER_FENCED
    commit = world.ask_end(producer, commit=True)
    assert code_of(commit) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    assert code_of(world.ask_end(producer, commit=True)) is ErrorCode.INVALID_TXN_STATE
    first_version = world.ask_end(producer, commit=True, version=0)
    assert code_of(first_version) is ErrorCode.PRODUCER_FENCED
    world.world.check_replay()


@pytest.mark.parametrize(
    "go_on",
    [
        lambda world, producer: world.init(expected=producer),
        lambda world, producer: world.end(producer, commit=False),
    ],
    ids=["recovery", "abort"],
)
def test_its_producer_goes_on_after_a_recovery_or_its_own_abort(
    go_on: Callable[[TransactionWorld, ProducerIdentity], ProducerIdentity],
) -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1)
    world.world.advance(TIMEOUT_MS * 2)
    world.write_last_markers()
    following = go_on(world, producer)
    assert following == producer._replace(producer_epoch=1)
    world.add(following, 1)


def test_one_without_a_transaction_does_not_time_out() -> None:
    world = TransactionWorld()
    world.init()
    world.world.advance(TIMEOUT_MS * 10)
    assert world.metadata.state is TransactionState.EMPTY


def test_many_at_a_time_are_aborted_in_turns() -> None:
    world = TransactionWorld()
    for number in range(250):
        producer = world.init(str(number))
        world.ask_add(producer, orders(1), transactional_id=str(number)).get()
    world.world.advance(TIMEOUT_MS * 2)
    assert len({prepared.transactional_id for prepared in world.prepared}) == 250


def test_a_look_that_fails_is_repeated_at_its_time() -> None:
    world = TransactionWorld()
    world.add(world.init(), 1)
    world.world.advance(TIMEOUT_MS)
    world.world.fail_next = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.world.advance(SCAN_MS)
    assert world.world.fail_next is None
    assert world.prepared == []
    world.world.advance(SCAN_MS)
    assert len(world.prepared) == 1


def test_ids_that_are_not_used_are_forgotten() -> None:
    world = TransactionWorld()
    world.look_seldom()
    world.init()
    world.world.advance(EXPIRY_MS - EXPIRY_SCAN_MS)
    assert world.world.shard.transactions.find(ID) is not None
    world.world.advance(2 * EXPIRY_SCAN_MS)
    assert world.world.shard.transactions.find(ID) is None
    assert world.world.topic[-1].record is not None
    assert world.world.topic[-1].record.value is None
    world.world.check_replay()


def test_ids_that_are_in_use_are_kept() -> None:
    world = TransactionWorld()
    world.look_seldom()
    used = world.init()
    open_one = world.init("open", two_phase=True)
    world.ask_add(open_one, orders(1), transactional_id="open").get()
    world.world.advance(EXPIRY_MS - 1)
    world.init(expected=used)
    world.world.advance(2 * EXPIRY_SCAN_MS)
    assert {metadata.transactional_id for metadata in world.world.shard.transactions} == {
        ID,
        "open",
    }


def test_many_ids_are_forgotten_in_turns() -> None:
    world = TransactionWorld()
    world.look_seldom()
    for number in range(250):
        world.init(str(number))
    world.world.advance(EXPIRY_MS + EXPIRY_SCAN_MS)
    assert len(world.world.shard.transactions) == 0
