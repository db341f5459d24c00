"""DescribeTransactions: all that is known of a transactional id."""

from __future__ import annotations

from pathlib import Path

from headwater.base.errors import ErrorCode
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.transaction_requests import SETTINGS, add, describe, init


def test_an_open_transaction_is_described(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        await broker.create_topic("refunds")
        producer = await init(broker)
        before_ms = broker.context.clock.wall_ms()
        await add(broker, producer, {"refunds": [0], "orders": [2, 1]}, version=5)
        (described,) = await describe(broker, "payments")
        assert described.error_code == ErrorCode.NONE
        assert described.transactional_id == "payments"
        assert described.transaction_state == "Ongoing"
        assert described.transaction_timeout_ms == 60_000
        assert before_ms <= described.transaction_start_time_ms
        assert described.transaction_start_time_ms <= broker.context.clock.wall_ms()
        assert (described.producer_id, described.producer_epoch) == (producer.producer_id, 0)
        assert {each.topic: each.partitions for each in described.topics} == {
            "orders": [1, 2],
            "refunds": [0],
        }

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_what_is_not_there_has_an_error_each(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        (missing,) = await describe(broker, "payments")
        assert missing.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await init(broker)
        described = await describe(broker, "payments", "unknown", "")
        assert [(each.transactional_id, each.error_code) for each in described] == [
            ("payments", ErrorCode.NONE),
            ("unknown", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
            ("", ErrorCode.INVALID_REQUEST),
        ]
        assert described[0].transaction_state == "Empty"
        assert described[0].transaction_start_time_ms == -1

    run_with_broker(tmp_path, scenario, SETTINGS)
