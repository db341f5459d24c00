"""AddPartitionsToTxn: a transaction begins, grows, and is verified."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.txn.transaction_metadata import TransactionState
from tests.support.worlds.shard_world import START_MS
from tests.support.worlds.transaction_world import TransactionWorld, code_of, orders


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_begins_with_its_first_partition(version: int) -> None:
    world = TransactionWorld()
    producer = world.init()
    world.world.advance(10)
    world.add(producer, 1, version=version)
    world.world.advance(10)
    world.add(producer, 2, 3, version=version)
    metadata = world.metadata
    assert metadata.state is TransactionState.ONGOING
    assert metadata.partitions == orders(1, 2, 3)
    assert metadata.start_ms == START_MS + 10
    assert metadata.last_update_ms == START_MS + 20
    assert metadata.client_version == version
    world.world.check_replay()


def test_partitions_that_are_there_already_cost_no_record() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1, 2)
    length = len(world.world.topic)
    world.add(producer, 2)
    assert len(world.world.topic) == length


def test_a_repetition_is_answered_when_the_first_request_is_safe() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.hold()
    first = world.ask_add(producer, orders(1))
    again = world.ask_add(producer, orders(1))
    assert not first.is_given
    assert not again.is_given
    world.release()
    assert first.get() == again.get() == orders(1)


def test_nothing_is_added_where_the_write_fails() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.world.fail_next = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    answer = world.ask_add(producer, orders(1))
    assert code_of(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.metadata.state is TransactionState.EMPTY


def test_who_may_not_add() -> None:
    world = TransactionWorld()
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer = world.init()
    stranger = producer._replace(producer_id=5)
    assert code_of(world.ask_add(stranger, orders(1))) is mapping
    assert code_of(world.ask_add(producer, orders(1), transactional_id="unknown")) is mapping
    newer = producer._replace(producer_epoch=9)
    assert code_of(world.ask_add(newer, orders(1))) is ErrorCode.PRODUCER_FENCED
    empty = world.ask_add(producer, orders(1), transactional_id="")
    assert code_of(empty) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 2])
def test_the_next_transaction_waits_until_the_last_is_complete(version: int) -> None:
    world = TransactionWorld()
    first = world.init()
    world.add(first, 1, version=version)
    following = world.end(first, commit=True, version=version)
    answer = world.ask_add(following, orders(2), version)
    assert code_of(answer) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_last_markers()
    world.add(following, 2, version=version)
    assert world.metadata.partitions == orders(2)


def test_verification_tells_what_is_part_of_the_transaction() -> None:
    world = TransactionWorld()
    producer = world.init()
    assert world.verify(producer, 1) == orders()
    world.add(producer, 1, 2, version=0)
    assert world.verify(producer, 2, 3) == orders(2)


def test_verification_fails_like_an_addition() -> None:
    world = TransactionWorld()
    producer = world.init()
    world.add(producer, 1, version=0)
    for wrong, code in (
        (producer._replace(producer_epoch=3), ErrorCode.PRODUCER_FENCED),
        (producer._replace(producer_id=3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ):
        with pytest.raises(KafkaError) as caught:
            world.verify(wrong, 1)
        assert caught.value.code is code
    world.end(producer, commit=False, version=0)
    with pytest.raises(KafkaError) as caught:
        world.verify(producer, 1)
    assert caught.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
