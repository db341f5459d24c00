"""WriteTxnMarkers: transactions end in partitions."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.topics.coordinator_topics import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    CoordinatorKind,
)
from headwater.net.peer_identity import ANONYMOUS, PeerIdentity
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.wire.cluster_messages.update_image import (
    UpdatedPartition,
    UpdatedTopic,
    UpdateImageRequest,
)
from headwater.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headwater.wire.records import Record, encode_batch, read_batch_header
from tests.support.brokers.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker
from tests.support.traffic.transactional_client import marker_codes, marker_request

BROKER = PeerIdentity(0)


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


async def _ask(
    broker: HandlerBroker, request: WriteTxnMarkersRequest, identity: PeerIdentity = BROKER
) -> list[ErrorCode]:
    broker.connection.identity = identity
    return marker_codes(await broker.ask(request, WriteTxnMarkersResponse))


async def _have_coordinators_lead(broker: HandlerBroker, leader_epoch: int) -> None:
    """Have the controller say that a coordinator leads its partition in that epoch."""
    context = broker.context
    await context.coordinator_topics.ensure(CoordinatorKind.TRANSACTION)
    topic = context.image.topics[TRANSACTIONS_TOPIC]
    partition = UpdatedPartition(
        leader=context.node_id,
        leader_epoch=leader_epoch,
        partition_epoch=leader_epoch,
        replicas=[context.node_id],
        isr=[context.node_id],
    )
    update = UpdateImageRequest(
        cluster_id=context.cluster_id,
        controller_id=context.node_id,
        controller_epoch=context.image.controller_epoch,
        from_version=context.image.version,
        to_version=context.image.version + 1,
        topics=[
            UpdatedTopic(name=topic.name, topic_id=topic.topic_id, partitions=[partition]),
        ],
    )
    assert (await context.member.receive(update)).error_code == ErrorCode.NONE


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
        await _have_coordinators_lead(broker, 6)
        for epoch, coordinator_epoch, code in (
            (3, 5, ErrorCode.NONE),
            (3, 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
            (2, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
            (3, 5, ErrorCode.NONE),
            (4, 6, ErrorCode.NONE),
        ):
            request = marker_request(7, epoch, ("orders", 0), coordinator_epoch=coordinator_epoch)
            assert await _ask(broker, request) == [code]

    run_with_broker(tmp_path, scenario, {"transaction.state.log.num.partitions": "2"})


def test_no_broker_coordinates_in_an_epoch_that_was_never_given_out(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await broker.context.groups.loaded()

        async def ask(coordinator_epoch: int) -> list[ErrorCode]:
            places = ("orders", 0), (OFFSETS_TOPIC, 0)
            request = marker_request(7, 0, *places, coordinator_epoch=coordinator_epoch)
            return await _ask(broker, request)

        for epoch in (1, 2**31 - 1):
            assert await ask(epoch) == [ErrorCode.UNKNOWN_LEADER_EPOCH] * 2
        await _have_coordinators_lead(broker, 3)
        assert await ask(4) == [ErrorCode.UNKNOWN_LEADER_EPOCH] * 2
        assert await ask(3) == [ErrorCode.NONE] * 2

    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "2"}
    run_with_broker(tmp_path, scenario, settings)


def test_clients_only_abort_what_is_open(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        partition = broker.context.partitions.get("orders", 0)

        async def ask(
            epoch: int, *, coordinator_epoch: int = 0, commit: bool = False, producer_id: int = 7
        ) -> ErrorCode:
            request = marker_request(
                producer_id,
                epoch,
                ("orders", 0),
                commit=commit,
                coordinator_epoch=coordinator_epoch,
            )
            (code,) = await _ask(broker, request, ANONYMOUS)
            return code

        assert await ask(0) is ErrorCode.INVALID_TXN_STATE
        _write(broker, "orders", 0, 7)
        _write(broker, "orders", 0, 8)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await ask(0, commit=True) is refused
        assert await ask(0, coordinator_epoch=1) is refused
        assert await ask(0, coordinator_epoch=2**31 - 1) is refused
        assert await ask(0, coordinator_epoch=-1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await ask(1) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await ask(0, producer_id=9) is ErrorCode.INVALID_TXN_STATE
        assert (partition.log_end_offset, partition.last_stable_offset) == (2, 0)
        # As tools do with one that hangs; again there is nothing to abort.
        assert await ask(0) is ErrorCode.NONE
        assert (partition.log_end_offset, partition.last_stable_offset) == (3, 1)
        assert await ask(0) is ErrorCode.INVALID_TXN_STATE
        # The coordinator is not in the way of that, nor that in the way of the coordinator.
        assert await _ask(broker, marker_request(7, 0, ("orders", 0))) == [ErrorCode.NONE]
        unknown = marker_request(7, 0, ("unknown", 0), commit=False)
        assert await _ask(broker, unknown, ANONYMOUS) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    run_with_broker(tmp_path, scenario)


def test_clients_abort_in_the_offsets_of_groups_too(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await broker.context.groups.loaded()
        request = marker_request(7, 0, (OFFSETS_TOPIC, 0), commit=False)
        assert await _ask(broker, request, ANONYMOUS) == [ErrorCode.INVALID_TXN_STATE]
        _write(broker, OFFSETS_TOPIC, 0, 7)
        assert await _ask(broker, request, ANONYMOUS) == [ErrorCode.NONE]
        partition = broker.context.partitions.get(OFFSETS_TOPIC, 0)
        assert (partition.log_end_offset, partition.last_stable_offset) == (2, 2)

    run_with_broker(tmp_path, scenario, {"offsets.topic.num.partitions": "1"})


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
