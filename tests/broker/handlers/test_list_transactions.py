"""ListTransactions: what this broker coordinates, filtered."""

from __future__ import annotations

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.transaction_requests import SETTINGS, add, init


async def names(
    broker: HandlerBroker, request: ListTransactionsRequest, *, version: int = 2
) -> list[str]:
    answer = await broker.ask(request, ListTransactionsResponse, version=version)
    assert answer.error_code == ErrorCode.NONE
    return sorted(each.transactional_id for each in answer.transaction_states)


def test_the_filters_of_each_version(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        empty = await init(broker, "empty-1")
        opened = await init(broker, "open-1")
        await add(broker, opened, {"orders": [0]}, version=5)
        for version in range(3):
            everything = ListTransactionsRequest()
            assert await names(broker, everything, version=version) == ["empty-1", "open-1"]
            of_state = ListTransactionsRequest(state_filters=["Ongoing"])
            assert await names(broker, of_state, version=version) == ["open-1"]
            of_producer = ListTransactionsRequest(producer_id_filters=[empty.producer_id])
            assert await names(broker, of_producer, version=version) == ["empty-1"]
        long_ones = ListTransactionsRequest(duration_filter=60_000, state_filters=["Ongoing"])
        assert await names(broker, long_ones, version=1) == []
        of_pattern = ListTransactionsRequest(transactional_id_pattern="open-.*")
        assert await names(broker, of_pattern) == ["open-1"]
        assert await names(broker, ListTransactionsRequest(transactional_id_pattern="open")) == []
        no_pattern = ListTransactionsRequest(transactional_id_pattern="")
        assert await names(broker, no_pattern) == ["empty-1", "open-1"]

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_each_entry_tells_producer_and_state(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        producer = await init(broker)
        request = ListTransactionsRequest(state_filters=["Empty", "Asleep"])
        answer = await broker.ask(request, ListTransactionsResponse)
        assert answer.unknown_state_filters == ["Asleep"]
        (entry,) = answer.transaction_states
        assert (entry.transactional_id, entry.producer_id, entry.transaction_state) == (
            "payments",
            producer.producer_id,
            "Empty",
        )

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_a_bad_pattern_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = ListTransactionsRequest(transactional_id_pattern="(")
        answer = await broker.ask(request, ListTransactionsResponse)
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    run_with_broker(tmp_path, scenario, SETTINGS)
