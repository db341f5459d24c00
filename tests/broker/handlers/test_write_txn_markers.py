"""WriteTxnMarkers: transactions end in partitions."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.coordinator_topics import OFFSETS_TOPIC, CoordinatorKind
from headwater.storage.transaction_index import AbortedTransaction
from headwater.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headwater.wire.records import Record, encode_batch, read_batch_header
from tests.support.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker
from tests.support.transactional_client import marker_codes, marker_request


def _write(broker: HandlerBroker, topic: str, partition: int, producer_id: int) -> None:
    batch = encode_batch(
        [Record(0, BASE_TIMESTAMP, b"k", b"v")],
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    broker.context.partitions.get(topic, partition).append(
        bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP
    )


async def _ask(broker: HandlerBroker, request: WriteTxnMarkersRequest) -> list[ErrorCode]:
    return marker_codes(await broker.ask(request, WriteTxnMarkersResponse))


def test_markers_end_transactions_in_several_partitions(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        for partition in (0, 1):
            for producer_id in (7, 8):
                _write(broker, "orders", partition, producer_id)
        request = marker_request(7, 0, ("orders", 0), ("orders", 1))
        request.markers += marker_request(8, 1, ("orders", 0), commit=False).markers
        assert await _ask(broker, request) == [ErrorCode.NONE] * 3
        first, second = (broker.context.partitions.get("orders", number) for number in (0, 1))
        assert (first.last_stable_offset, first.log_end_offset) == (4, 4)
        assert (second.last_stable_offset, second.log_end_offset) == (1, 3)
        assert first.log.aborted_transactions(0, 4) == [AbortedTransaction(8, 1, 3, 4)]
        assert first.log.flushed_offset >= 4  # As safe as acks=all is.
        region = first.log.read(2, 1, min_one_batch=True).region
        assert region is not None
        header = read_batch_header(region.read())
        assert header.is_control
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch) == (7, 0)

    run_with_broker(tmp_path, scenario, {"acks.all.flush": "auto"})


def test_each_partition_has_its_own_outcome(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        request = marker_request(7, 0, ("orders", 0), ("orders", 5), ("unknown", 0))
        assert await _ask(broker, request) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    run_with_broker(tmp_path, scenario)


def test_older_coordinators_and_producers_are_fenced(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        for epoch, coordinator_epoch, code in (
            (3, 5, ErrorCode.NONE),
            (3, 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
            (2, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
            (3, 5, ErrorCode.NONE),
            (4, 6, ErrorCode.NONE),
        ):
            request = marker_request(7, epoch, ("orders", 0), coordinator_epoch=coordinator_epoch)
            assert await _ask(broker, request) == [code]

    run_with_broker(tmp_path, scenario)


def test_markers_for_offsets_go_through_the_group_coordinator(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = marker_request(7, 0, (OFFSETS_TOPIC, 3))
        assert await _ask(broker, request) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await broker.context.groups.loaded()
        assert await _ask(broker, request) == [ErrorCode.NONE]
        assert broker.context.partitions.get(OFFSETS_TOPIC, 3).log_end_offset == 1

    run_with_broker(tmp_path, scenario, {"offsets.topic.num.partitions": "5"})


def test_nothing_to_write_is_answered_too(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        response = await broker.ask(WriteTxnMarkersRequest(), WriteTxnMarkersResponse)
        assert response.markers == []

    run_with_broker(tmp_path, scenario)
