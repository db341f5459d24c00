"""DescribeProducers: what partitions know of their producers."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
)
from tests.support.brokers.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker


def _append(broker: HandlerBroker, producer_id: int, *, transactional: bool, count: int) -> None:
    batch = encode_batch(
        [Record(number, BASE_TIMESTAMP + number, b"k", b"v") for number in range(count)],
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=2,
        base_sequence=10,
        transactional=transactional,
    )
    partition = broker.context.partitions.get("orders", 0)
    partition.append(bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP)


def test_producers_are_described_with_what_they_have_open(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        _append(broker, 7, transactional=False, count=3)
        _append(broker, 8, transactional=True, count=2)
        _append(broker, 9, transactional=True, count=1)
        marker = encode_end_transaction_marker(
            ControlType.COMMIT,
            producer_id=9,
            producer_epoch=2,
            coordinator_epoch=4,
            timestamp_ms=BASE_TIMESTAMP + 50,
        )
        broker.context.partitions.get("orders", 0).append(
            bytearray(marker), acks=1, now_ms=BASE_TIMESTAMP, origin=AppendOrigin.COORDINATOR
        )
        topics = [
            TopicRequest(name="orders", partition_indexes=[0, 1, 2]),
            TopicRequest(name="unknown", partition_indexes=[0]),
        ]
        response = await broker.ask(
            DescribeProducersRequest(topics=topics), DescribeProducersResponse
        )
        orders, unknown = response.topics
        assert [each.error_code for each in orders.partitions] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert unknown.partitions[0].error_message
        assert orders.partitions[1].active_producers == []
        described = [
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp - BASE_TIMESTAMP,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in orders.partitions[0].active_producers
        ]
        assert described == [
            (7, 2, 12, 2, -1, -1),
            (8, 2, 11, 1, -1, 3),
            (9, 2, 10, 50, 4, -1),
        ]

    run_with_broker(tmp_path, scenario)
