"""`AsyncConsumer` fetching from brokers that answer as they are told."""

import asyncio
import random

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.fetch import AbortedTransaction, FetchResponse
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
)
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import Call, FakeBrokers
from tests.support.fakes.peers.logs import FakeLogs, Visit

TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def consumer_at(
    cluster: FakeBrokers,
    *partitions: TopicPartition,
    offset: int = 0,
    reset: str = "none",
    isolation_level: str = "read_uncommitted",
    partition_bytes_max: int = 1 << 20,
) -> AsyncConsumer:
    """A consumer that reads these partitions from an offset on."""
    environment = ClientEnvironment(generator=random.Random(1))
    consumer = in_environment(AsyncConsumer, environment)(
        {"isolation.level": isolation_level},
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset=reset,
        max_partition_fetch_bytes=partition_bytes_max,
        retry_backoff_ms=1,
        retry_backoff_max_ms=5,
    )
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, offset)
    return consumer


def batch(*values: bytes, **options: object) -> bytes:
    records = [Record(index, 1000, None, value) for index, value in enumerate(values)]
    return encode_batch(records, **options)  # type: ignore[arg-type]


async def read(consumer: AsyncConsumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += [record.value for record in await consumer.poll(1.0)]
    return found


@run_async
async def test_positions_move_with_what_is_handed_out() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        for first in range(3):
            logs.append(TP, batch(b"%d" % first, b"%d'" % first))
        async with consumer_at(cluster, TP, offset=1) as consumer:
            assert await read(consumer, 5) == [b"0'", b"1", b"1'", b"2", b"2'"]
            assert await consumer.position(TP) == 6
            assert await consumer.poll(0.02) == []
            logs.append(TP, batch(b"3"))
            assert await read(consumer, 1) == [b"3"]
            consumer.seek(TP, 4)
            assert await read(consumer, 3) == [b"2", b"2'", b"3"]


@run_async
async def test_the_next_request_is_under_way_while_the_caller_works() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        logs.append(TP, batch(b"1"))
        logs.append(TP, batch(b"2"))
        async with consumer_at(cluster, TP) as consumer:
            assert len(await consumer.poll(5.0)) == 1
            async with asyncio.timeout(5):
                while len(logs.visits) < 2:
                    await asyncio.sleep(0.001)
            assert logs.visits[1].offset == 1


@run_async
async def test_a_silent_leader_holds_up_nobody() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        cluster.topics["orders"] = [0, 1]
        logs = FakeLogs(cluster)
        logs.append(OTHER, batch(b"other"))
        answer = cluster._scripts[ApiKey.FETCH]
        cluster.script(ApiKey.FETCH, lambda call: None if call.broker_id == 0 else answer(call))
        async with consumer_at(cluster, TP, OTHER) as consumer:
            assert await read(consumer, 1) == [b"other"]


@run_async
async def test_a_leader_that_moved_is_found() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        logs.append(TP, batch(b"1"))

        def refuse(visit: Visit) -> int:
            cluster.topics["orders"] = [1]
            return 0 if visit.broker_id == 1 else ErrorCode.NOT_LEADER_OR_FOLLOWER

        logs.refuse = refuse
        async with consumer_at(cluster, TP) as consumer:
            assert await read(consumer, 1) == [b"1"]


@run_async
async def test_a_broker_that_comes_back() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        logs.append(TP, batch(b"1"))
        async with consumer_at(cluster, TP) as consumer:
            assert await read(consumer, 1) == [b"1"]
            port = cluster.listeners[0].port
            await cluster.stop_broker(0)
            assert await consumer.poll(0.03) == []
            logs.append(TP, batch(b"2"))
            await cluster.start_broker(0, port)
            assert await read(consumer, 1) == [b"2"]


@pytest.mark.parametrize(("reset", "expected"), [("earliest", b"1"), ("latest", b"3")])
@run_async
async def test_an_offset_that_is_not_there(reset: str, expected: bytes) -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        for value in (b"0", b"1", b"2", b"3"):
            logs.append(TP, batch(value))
        logs.refuse = lambda visit: 0 if visit.offset > 0 else ErrorCode.OFFSET_OUT_OF_RANGE

        def list_offsets(call: Call) -> ListOffsetsResponse:
            [topic] = call.request.topics
            offset = {-1: 3, -2: 1}[topic.partitions[0].timestamp]
            found = ListOffsetsPartitionResponse(offset=offset)
            return ListOffsetsResponse(
                topics=[ListOffsetsTopicResponse(name="orders", partitions=[found])]
            )

        cluster.script(ApiKey.LIST_OFFSETS, list_offsets)
        async with consumer_at(cluster, TP, reset=reset) as consumer:
            assert (await read(consumer, 1))[0] == expected


@run_async
async def test_only_what_is_committed() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        transactional = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
        logs.append(TP, batch(b"aborted", producer_id=1, **transactional))
        logs.append(TP, batch(b"committed", producer_id=2, **transactional))
        for producer_id, kind in ((1, ControlType.ABORT), (2, ControlType.COMMIT)):
            marker = encode_end_transaction_marker(
                kind,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp_ms=1,
            )
            logs.append(TP, marker)
        logs.append(TP, batch(b"plain"))
        logs.aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
        async with consumer_at(cluster, TP, isolation_level="read_committed") as consumer:
            assert await read(consumer, 2) == [b"committed", b"plain"]
        assert cluster.requests(ApiKey.FETCH)[0].isolation_level == 1


@run_async
async def test_a_batch_beyond_the_limit_is_told() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        logs.batches[TP] = [batch(b"x" * 100)]
        logs._read = lambda key, offset: logs.batches[key][0][:50]  # type: ignore[method-assign]
        async with consumer_at(cluster, TP, partition_bytes_max=50) as consumer:
            with pytest.raises(KafkaError, match="at offset 0 that is larger than 50 bytes"):
                await read(consumer, 1)


@run_async
async def test_a_broker_without_topic_ids_is_asked_by_name() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        cluster.has_topic_ids = False
        logs = FakeLogs(cluster)
        logs.append(TP, batch(b"1"))
        async with consumer_at(cluster, TP) as consumer:
            assert await read(consumer, 1) == [b"1"]
        versions = {call.version for call in cluster.calls if call.api_key is ApiKey.FETCH}
        assert versions == {12}


@run_async
async def test_a_session_that_the_broker_forgot_is_begun_again() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        logs.append(TP, batch(b"1"))
        logs.append(TP, batch(b"2"))
        answer = cluster._scripts[ApiKey.FETCH]

        def fetch(call: Call) -> FetchResponse:
            if call.request.session_epoch > 0:
                return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            response = answer(call)
            assert isinstance(response, FetchResponse)
            response.session_id = 9
            return response

        cluster.script(ApiKey.FETCH, fetch)
        async with consumer_at(cluster, TP) as consumer:
            assert await read(consumer, 2) == [b"1", b"2"]
        epochs = [request.session_epoch for request in cluster.requests(ApiKey.FETCH)]
        assert epochs[:3] == [0, 1, 0]


@run_async
async def test_an_error_of_one_partition_does_not_cost_the_data_of_another() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0, 0]
        logs = FakeLogs(cluster)
        logs.append(TP, batch(b"good"))
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        logs.refuse = lambda visit: denied if visit.topic_partition == OTHER else 0
        async with consumer_at(cluster, OTHER, TP) as consumer:
            with pytest.raises(KafkaError, match="orders-1") as refused:
                await read(consumer, 2)
            assert refused.value.code is denied
            consumer.assign([TP])
            consumer.seek(TP, 0)
            assert await read(consumer, 1) == [b"good"]


@run_async
async def test_giving_up_on_a_poll_loses_nothing() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        logs = FakeLogs(cluster)
        for number in range(100):
            logs.append(TP, batch(b"%d" % number))
        found: list[bytes | None] = []
        generator = random.Random(5)
        async with consumer_at(cluster, TP) as consumer:
            while await consumer.position(TP) < 100:
                polling = asyncio.create_task(consumer.poll(1.0))
                for _ in range(generator.randrange(12)):
                    await asyncio.sleep(0)
                if generator.random() < 0.5:
                    polling.cancel()
                try:
                    found += [record.value for record in await polling]
                except asyncio.CancelledError:
                    continue
        assert found == [b"%d" % number for number in range(100)]
