"""`AsyncProducer` on a real cluster and on scripted brokers: everything on the caller's loop."""

import asyncio
import random
import threading

import pytest

from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.client.connection.bootstrap import Address
from headwater.client.connection.cluster_connection import connect_channel
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.errors import ClientClosedError, DeadlineError
from headwater.client.kafka_errors import OutOfOrderSequenceNumberError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.errors import BufferExhaustedError, TopicNotKnownError
from headwater.net.peer_channel import PeerChannel
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.init_producer_id import InitProducerIdResponse
from headwater.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import Cluster
from tests.support.fakes.peers.brokers import Call, Disconnect, FakeBrokers


def test_records_are_awaited(cluster: Cluster) -> None:
    topic = cluster.new_name()

    async def scenario() -> None:
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
            first = await producer.send_and_wait(topic, b"first", b"key", timestamp_ms=55)
            assert first == (topic, 0, 0, 55)
            futures = [await producer.send(topic, b"%d" % number) for number in range(1000)]
            found = await asyncio.gather(*futures)
            assert [metadata.offset for metadata in found] == list(range(1, 1001))
            assert futures[0].done()
            await producer.flush()
            assert (await producer.metrics())["record-send-total"] == 1001
            assert [each.partition for each in await producer.partitions_for(topic)] == [0]

    asyncio.run(scenario())


def test_callbacks_and_errors_reach_the_caller(cluster: Cluster) -> None:
    topic = cluster.new_name()
    told: list[int] = []

    async def scenario() -> None:
        async with AsyncProducer(
            bootstrap_servers=cluster.bootstrap, max_request_size=5_000_000
        ) as producer:
            future = await producer.send(
                topic,
                b"value",
                on_delivery=lambda found, _: told.append(found.offset if found else -1),
            )
            await future
            refused = await producer.send(topic, b"x" * 2_000_000)
            with pytest.raises(KafkaError) as raised:
                await refused
            assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(ClientClosedError):
            await producer.send(topic, b"value")

    asyncio.run(scenario())
    assert told == [0]


def test_what_was_sent_is_written_when_it_is_closed(cluster: Cluster) -> None:
    topic = cluster.new_name()

    async def scenario() -> None:
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap, linger_ms=60_000) as producer:
            future = await producer.send(topic, b"value")
        assert (await future).offset == 0

    asyncio.run(scenario())


@run_async
async def test_it_is_refused_before_it_is_started() -> None:
    producer = AsyncProducer(bootstrap_servers="127.0.0.1:1")
    with pytest.raises(ClientClosedError, match="not started"):
        await producer.send("topic", b"value")
    await producer.close()
    with pytest.raises(SettingError, match="spool"):
        AsyncProducer(spool_dir="/tmp/spool")
    async with AsyncProducer(bootstrap_servers="127.0.0.1:1") as plain:
        with pytest.raises(SettingError, match=r"transactional.id"):
            await plain.begin_transaction()


@run_async
async def test_time_and_connections_come_from_outside_and_no_thread_is_started() -> None:
    before = threading.enumerate()
    connected: list[Address] = []

    async def connect(address: Address, client_id: str, timeout_s: float) -> PeerChannel:
        connected.append(address)
        return await connect_channel(address, client_id, timeout_s)

    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        requests: list[ProduceRequest] = []

        def note(call: Call) -> None:
            requests.append(call.request)

        cluster.script(ApiKey.PRODUCE, note)
        environment = ClientEnvironment(ManualClock(wall_ms=777), connect, random.Random(1))
        async with in_environment(AsyncProducer, environment)(
            bootstrap_servers=cluster.bootstrap, acks=0
        ) as producer:
            assert (await producer.send_and_wait("orders", b"value")).timestamp == 777
        assert connected
        assert len(requests) == 1
    # Brokers that other tests share live in this process too, and their pools may grow.
    started = {thread.name for thread in threading.enumerate() if thread not in before}
    assert {name for name in started if not name.startswith(("io_", "background_"))} == set()


@run_async
async def test_who_waits_for_a_topic_in_vain_is_told_why() -> None:
    async with (
        FakeBrokers() as cluster,
        AsyncProducer(
            bootstrap_servers=cluster.bootstrap, acks=0, max_block_ms=250, retry_backoff_ms=10
        ) as producer,
    ):
        with pytest.raises(TopicNotKnownError, match="no topic 'missing'") as raised:
            await producer.send("missing", b"value")
        assert isinstance(raised.value.__cause__, KafkaError)
        assert raised.value.__cause__.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster.topic_errors["secret"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(KafkaError) as refused:
            await producer.send("secret", b"value")
        assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@run_async
async def test_a_topic_that_is_created_meanwhile_is_found() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(ApiKey.PRODUCE, lambda call: None)
        async with AsyncProducer(
            bootstrap_servers=cluster.bootstrap, acks=0, retry_backoff_ms=10
        ) as producer:
            sending = asyncio.ensure_future(producer.send("late", b"value"))
            await asyncio.sleep(0.05)
            assert not sending.done()
            cluster.topics["late"] = [0]
            assert (await (await sending)).topic == "late"


@run_async
async def test_a_full_buffer_is_waited_for_and_then_told() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        # Produce requests are never answered.
        cluster.script(ApiKey.PRODUCE, lambda call: None)
        producer = AsyncProducer(
            bootstrap_servers=cluster.bootstrap,
            enable_idempotence=False,
            batch_size=100,
            buffer_memory=250,
            max_block_ms=200,
        )
        await producer.start()
        for _ in range(2):
            await producer.send("orders", b"x" * 50)
        with pytest.raises(BufferExhaustedError, match=r"buffer.memory"):
            await producer.send("orders", b"x" * 50)
        assert (await producer.metrics())["buffer-exhausted-total"] == 1
        with pytest.raises(DeadlineError):
            await producer.flush(0.05)
        await producer.close(0)


@run_async
async def test_a_cut_connection_is_made_again() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        answers = iter([Disconnect(), Disconnect()])
        cluster.script(ApiKey.PRODUCE, lambda call: next(answers, None))
        producer = AsyncProducer(
            bootstrap_servers=cluster.bootstrap,
            enable_idempotence=False,
            retry_backoff_ms=5,
            retry_backoff_max_ms=5,
        )
        async with producer:
            future = await producer.send("orders", b"value")
            async with asyncio.timeout(10):
                while len(cluster.requests(ApiKey.PRODUCE)) < 3:
                    await asyncio.sleep(0.005)
            assert not future.done()
            await producer.close(0)
        with pytest.raises(ClientClosedError):
            await future


@run_async
async def test_a_cancelled_wait_leaves_the_record_alone() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        cluster.script(ApiKey.PRODUCE, lambda call: None)
        producer = AsyncProducer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False)
        await producer.start()
        future = await producer.send("orders", b"value")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await future
        assert not future.done()
        await producer.close(0)
        with pytest.raises(ClientClosedError):
            await future


@run_async
async def test_after_a_loss_every_later_call_fails_until_there_is_a_new_producer() -> None:
    answers = iter([ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])

    def answer(call: Call) -> ProduceResponse:
        (topic,) = call.request.topic_data
        partition = PartitionProduceResponse(index=0, error_code=next(answers))
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=[partition]
                )
            ]
        )

    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        cluster.script(ApiKey.INIT_PRODUCER_ID, lambda call: InitProducerIdResponse(producer_id=7))
        cluster.script(ApiKey.PRODUCE, answer)
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
            await producer.send_and_wait("orders", b"written")
            lost = await producer.send("orders", b"the leader misses what it acknowledged")
            with pytest.raises(OutOfOrderSequenceNumberError):
                await lost
            for _ in range(2):
                with pytest.raises(OutOfOrderSequenceNumberError):
                    await producer.send("orders", b"later")
