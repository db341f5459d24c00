"""The producer against brokers that answer as they are told."""

import asyncio
import random
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.errors import DeadlineError, DeliveryError, UnknownTopicError
from headwater.client.kafka_errors import MessageTooLargeError
from headwater.client.partitioner import partition_for_key
from headwater.client.plain_producer import RECORD_SIZE_MAX_BYTES, Delivery, PlainProducer
from headwater.client.retry import RetryPolicy
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.metadata import MetadataResponse
from headwater.wire.records import Compression
from tests.support.async_tests import run_async
from tests.support.scripted_cluster import Call, ScriptedCluster
from tests.support.scripted_logs import ScriptedLogs, Visit


def connection_to(cluster: ScriptedCluster, timeout_s: float = 10.0) -> ClusterConnection:
    return ClusterConnection(
        cluster.bootstrap,
        timeout_s=timeout_s,
        policy=RetryPolicy(backoff_ms=1, backoff_max_ms=5),
        generator=random.Random(1),
    )


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def fail_first(count: int, code: ErrorCode) -> Callable[[Visit], int]:
    """Refuses the first `count` visits."""
    left = count

    def refuse(visit: Visit) -> int:
        nonlocal left
        left -= 1
        return code if left >= 0 else 0

    return refuse


@run_async
async def test_records_arrive_in_order_and_the_batches_are_told() -> None:
    deliveries: list[Delivery] = []
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        async with PlainProducer(
            connection, batch_records_max=10, on_delivery=deliveries.append
        ) as producer:
            for value in numbers(95):
                await producer.send("orders", value)
        assert logs.values("orders") == numbers(95)
        assert producer.delivered_count == 95
        assert [delivery.base_offset for delivery in deliveries] == list(range(0, 95, 10))
        assert all(delivery.error is None for delivery in deliveries)
        assert all(d.opened_s <= d.sent_s <= d.ended_s for d in deliveries)


@run_async
async def test_a_record_is_what_was_given() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0, 0]
        logs = ScriptedLogs(cluster)
        headers = (("a", b"1"), ("b", None))
        async with PlainProducer(connection, compression=Compression.GZIP) as producer:
            await producer.send(
                "orders", None, key=b"k", partition=1, headers=headers, timestamp_ms=77
            )
        [visit] = logs.visits
        assert visit.topic_partition == TopicPartition("orders", 1)
        assert visit.records == [(0, 77, b"k", None, headers)]
        with pytest.raises(UnknownTopicError, match="has no partition 2"):
            await producer.send("orders", b"x", partition=2)


@run_async
async def test_a_key_decides_and_records_without_one_are_spread_by_batch() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0, 0, 0]
        logs = ScriptedLogs(cluster)
        async with PlainProducer(connection, batch_records_max=5) as producer:
            for value in numbers(60):
                await producer.send("orders", value, key=value)
        for partition in range(3):
            assert logs.values("orders", partition) == [
                value for value in numbers(60) if partition_for_key(value, 3) == partition
            ]
        logs.visits.clear()
        async with PlainProducer(connection, batch_records_max=5) as producer:
            for value in numbers(300):
                await producer.send("orders", value)
        assert {len(visit.records) for visit in logs.visits} == {5}
        assert {visit.topic_partition.partition for visit in logs.visits} == {0, 1, 2}


@run_async
async def test_partitions_without_a_leader_get_no_records_that_may_go_elsewhere() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [-1, 0, -1]
        logs = ScriptedLogs(cluster)
        async with PlainProducer(connection, batch_records_max=1) as producer:
            for value in numbers(10):
                await producer.send("orders", value)
        assert logs.values("orders", 1) == numbers(10)


@run_async
async def test_a_leader_that_moved_is_found_and_order_is_kept() -> None:
    async with ScriptedCluster(broker_count=2) as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)

        def refuse(visit: Visit) -> int:
            cluster.topics["orders"] = [1]
            return 0 if visit.broker_id == 1 else ErrorCode.NOT_LEADER_OR_FOLLOWER

        logs.refuse = refuse
        async with PlainProducer(connection, batch_records_max=7) as producer:
            for value in numbers(50):
                await producer.send("orders", value)
        assert logs.values("orders") == numbers(50)


@run_async
async def test_a_broker_that_goes_away_and_comes_back() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        async with PlainProducer(connection) as producer:
            await producer.send("orders", b"before")
            await producer.flush()
            port = cluster.listeners[0].port
            await cluster.stop_broker(0)
            await producer.send("orders", b"after")
            flush = asyncio.create_task(producer.flush())
            await asyncio.sleep(0.03)
            assert not flush.done()
            await cluster.start_broker(0, port)
            await flush
        assert logs.values("orders") == [b"before", b"after"]


@run_async
async def test_an_answer_that_is_lost_leads_to_a_second_copy() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        losses = iter([True])
        logs.lose_answer = lambda call: next(losses, False)
        async with PlainProducer(connection) as producer:
            await producer.send("orders", b"one")
        assert logs.values("orders") == [b"one", b"one"]
        assert producer.delivered_count == 1


@run_async
async def test_a_batch_that_is_too_large_is_divided_until_it_fits() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        too_large = ErrorCode.MESSAGE_TOO_LARGE
        logs.refuse = lambda visit: too_large if len(visit.records) > 3 else 0
        async with PlainProducer(connection, batch_records_max=20) as producer:
            for value in numbers(50):
                await producer.send("orders", value)
        assert logs.values("orders") == numbers(50)


@run_async
async def test_what_a_broker_refuses_fails_the_flush_and_later_records_go_on() -> None:
    deliveries: list[Delivery] = []
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        producer = PlainProducer(connection, on_delivery=deliveries.append)
        logs.refuse = fail_first(1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        await producer.send("orders", b"one")
        await producer.send("orders", b"two")
        with pytest.raises(DeliveryError) as failed:
            await producer.flush()
        assert failed.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (producer.delivered_count, producer.failed_count) == (0, 2)
        [delivery] = deliveries
        assert delivery.error is not None
        await producer.send("orders", b"three")
        await producer.flush()
        assert logs.values("orders") == [b"three"]
        await producer.close()


@run_async
async def test_a_batch_is_given_up_after_its_time() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.refuse = lambda visit: ErrorCode.NOT_ENOUGH_REPLICAS
        producer = PlainProducer(connection, delivery_timeout_s=0.5)
        await producer.send("orders", b"one")
        with pytest.raises(DeliveryError, match="fewer in-sync replicas"):
            await producer.flush()
        assert len(logs.visits) > 1
        await producer.close()


@run_async
async def test_without_acks_nothing_is_waited_for() -> None:
    deliveries: list[Delivery] = []
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        async with PlainProducer(connection, acks=0, on_delivery=deliveries.append) as producer:
            await producer.send("orders", b"one")
        assert [delivery.base_offset for delivery in deliveries] == [-1]
        async with asyncio.timeout(5):
            while not logs.visits:
                await asyncio.sleep(0.001)
        assert logs.values("orders") == [b"one"]


@run_async
async def test_a_broker_without_topic_ids_is_asked_by_name() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        cluster.has_topic_ids = False
        logs = ScriptedLogs(cluster)
        async with PlainProducer(connection) as producer:
            await producer.send("orders", b"one")
        assert logs.values("orders") == [b"one"]
        assert [call.version for call in cluster.calls if call.api_key is ApiKey.PRODUCE] == [12]


@run_async
async def test_a_topic_that_is_created_by_asking_for_it() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        logs = ScriptedLogs(cluster)
        asked = 0

        def metadata(call: Call) -> MetadataResponse:
            nonlocal asked
            if call.request.topics:
                asked += 1
                assert call.request.allow_auto_topic_creation
            if asked == 3:
                cluster.topics["new"] = [0]
            return cluster.metadata(call.request)

        cluster.script(ApiKey.METADATA, metadata)
        async with PlainProducer(connection) as producer:
            await producer.send("new", b"one")
        assert logs.values("new") == [b"one"]


@run_async
async def test_a_topic_that_never_comes_is_told() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        producer = PlainProducer(connection, topic_timeout_s=1.0)
        with pytest.raises(DeadlineError, match=r"within 1 s: There is no topic 'absent'\."):
            await producer.send("absent", b"one")
        await producer.flush()


@run_async
async def test_a_full_buffer_is_waited_for() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        most = 0
        async with PlainProducer(
            connection, buffer_bytes=2000, batch_records_max=5, linger_ms=0
        ) as producer:
            for value in numbers(200):
                await producer.send("orders", value * 10)
                most = max(most, producer._batches.buffered_bytes)
        assert 1000 < most < 2200
        assert len(logs.values("orders")) == 200


@run_async
async def test_a_value_that_no_broker_takes_is_refused_at_once() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        producer = PlainProducer(connection)
        with pytest.raises(MessageTooLargeError, match="more than any broker accepts"):
            await producer.send("orders", bytes(RECORD_SIZE_MAX_BYTES + 1))


@run_async
async def test_a_mistake_in_the_callers_function_does_not_go_unseen() -> None:
    def fail(delivery: Delivery) -> None:
        raise ZeroDivisionError

    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0, 0]
        ScriptedLogs(cluster)
        producer = PlainProducer(connection, on_delivery=fail)
        for partition in range(2):
            await producer.send("orders", b"one", partition=partition)
        with pytest.raises(ZeroDivisionError):
            await producer.flush()
        await producer.close()


@run_async
async def test_leaving_by_an_exception_does_not_wait() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        cluster.script(ApiKey.PRODUCE, lambda call: None)
        with pytest.raises(ValueError, match="mine"):
            async with PlainProducer(connection) as producer:
                await producer.send("orders", b"one")
                raise ValueError("mine")
