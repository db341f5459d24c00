"""AddPartitionsToTxn: single, batched, only to verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.transaction_requests import (
    SETTINGS,
    add,
    codes_of,
    describe,
    init,
    state_of,
    topics_of,
)


def test_every_version_begins_a_transaction(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        for version in range(6):
            producer = await init(broker, f"producer-{version}")
            codes = await add(broker, producer, {"orders": [0, 2]}, version=version)
            assert codes == {("orders", 0): 0, ("orders", 2): 0}
            (described,) = await describe(broker, producer.transactional_id)
            assert described.transaction_state == "Ongoing"
            assert [(each.topic, each.partitions) for each in described.topics] == [
                ("orders", [0, 2])
            ]

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_if_one_partition_does_not_exist_none_is_added(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        producer = await init(broker)
        for version in (3, 5):
            codes = await add(broker, producer, {"orders": [0, 1], "missing": [0]}, version=version)
            assert codes == {
                ("orders", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
                ("orders", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
        assert await state_of(broker, producer) == "Empty"

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_verification_adds_nothing(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await init(broker)
        await add(broker, producer, {"orders": [0]}, version=3)
        for version in (4, 5):
            codes = await add(
                broker, producer, {"orders": [0, 1]}, version=version, verify_only=True
            )
            assert codes == {("orders", 0): 0, ("orders", 1): ErrorCode.TRANSACTION_ABORTABLE}

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_the_error_for_a_fenced_producer_depends_on_the_version(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        producer = await init(broker)
        await init(broker)
        for version in range(6):
            fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
            codes = await add(broker, producer, {"orders": [0]}, version=version)
            assert codes == {("orders", 0): fenced}
        unknown = producer._replace(transactional_id="unknown")
        codes = await add(broker, unknown, {"orders": [0]}, version=5, verify_only=True)
        assert codes == {("orders", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_several_transactions_at_once(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.become_broker()
        producers = [await init(broker, name) for name in ("one", "two", "three")]
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=name,
                    producer_id=producer_id,
                    producer_epoch=epoch if name != "two" else 9,
                    topics=topics_of({"orders": [0]}),
                )
                for name, producer_id, epoch in producers
            ]
        )
        answer = await broker.ask(request, AddPartitionsToTxnResponse)
        assert [
            (result.transactional_id, codes_of(result.topic_results))
            for result in answer.results_by_transaction
        ] == [
            ("one", {("orders", 0): 0}),
            ("two", {("orders", 0): ErrorCode.PRODUCER_FENCED}),
            ("three", {("orders", 0): 0}),
        ]

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_without_the_topic_there_is_no_coordinator(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        producer = await init(broker)
        await broker.context.controller.delete_topics(["__transaction_state"])
        codes = await add(broker, producer, {"orders": [0]}, version=5)
        assert codes == {("orders", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}

    run_with_broker(tmp_path, scenario, SETTINGS)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("verify_only", [True, False])
def test_several_transactions_are_for_brokers_to_ask(
    tmp_path: Path, version: int, verify_only: bool
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        producer = await init(broker)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=topics_of({"orders": [0]}),
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = await broker.ask(request, AddPartitionsToTxnResponse, version=version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert answer.results_by_transaction == []
        assert await state_of(broker, producer) == "Empty"
        # What clients ask for is theirs to have.
        assert await add(broker, producer, {"orders": [0]}, version=3) == {("orders", 0): 0}

    run_with_broker(tmp_path, scenario, SETTINGS)
