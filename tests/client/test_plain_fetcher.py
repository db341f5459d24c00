"""The fetcher against brokers that answer as they are told."""

import asyncio
import random

import pytest

from headwater.base.checks import InvariantViolation
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownTopicError
from headwater.client.fetch_requests import FetchLimits
from headwater.client.isolation import IsolationLevel
from headwater.client.plain_fetcher import OffsetReset, PlainFetcher
from headwater.client.retry import RetryPolicy
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
from tests.support.scripted_cluster import Call, ScriptedCluster
from tests.support.scripted_logs import ScriptedLogs, Visit

TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def connection_to(cluster: ScriptedCluster, timeout_s: float = 10.0) -> ClusterConnection:
    return ClusterConnection(
        cluster.bootstrap,
        timeout_s=timeout_s,
        policy=RetryPolicy(backoff_ms=1, backoff_max_ms=5),
        generator=random.Random(1),
    )


def batch(*values: bytes, **options: object) -> bytes:
    records = [Record(index, 1000, None, value) for index, value in enumerate(values)]
    return encode_batch(records, **options)  # type: ignore[arg-type]


async def read(fetcher: PlainFetcher, count: int) -> list[bytes | None]:
    """The next `count` values, of whatever partitions."""
    found: list[bytes | None] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            for partition in await fetcher.fetch(1.0):
                found += [record.value for record in partition.records()]
    return found


@run_async
async def test_positions_move_with_what_is_handed_out() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        for first in range(3):
            logs.append(TP, batch(b"%d" % first, b"%d'" % first))
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 1})
            assert await read(fetcher, 5) == [b"0'", b"1", b"1'", b"2", b"2'"]
            assert fetcher.positions == {TP: 6}
            assert await fetcher.fetch(0.02) == []
            logs.append(TP, batch(b"3"))
            assert await read(fetcher, 1) == [b"3"]
            fetcher.assign({TP: 4})
            assert await read(fetcher, 3) == [b"2", b"2'", b"3"]


@run_async
async def test_the_next_request_is_under_way_while_the_caller_works() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.append(TP, batch(b"1"))
        logs.append(TP, batch(b"2"))
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert len(await fetcher.fetch(5.0)) == 1
            async with asyncio.timeout(5):
                while len(logs.visits) < 2:
                    await asyncio.sleep(0.001)
            assert logs.visits[1].offset == 1


@run_async
async def test_every_leader_is_asked_and_a_silent_one_holds_up_nobody() -> None:
    async with ScriptedCluster(broker_count=2) as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0, 1]
        logs = ScriptedLogs(cluster)
        logs.append(OTHER, batch(b"other"))
        answer = cluster._scripts[ApiKey.FETCH]
        cluster.script(ApiKey.FETCH, lambda call: None if call.broker_id == 0 else answer(call))
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0, OTHER: 0})
            assert await read(fetcher, 1) == [b"other"]


@run_async
async def test_a_leader_that_moved_is_found() -> None:
    async with ScriptedCluster(broker_count=2) as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.append(TP, batch(b"1"))

        def refuse(visit: Visit) -> int:
            cluster.topics["orders"] = [1]
            return 0 if visit.broker_id == 1 else ErrorCode.NOT_LEADER_OR_FOLLOWER

        logs.refuse = refuse
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert await read(fetcher, 1) == [b"1"]


@run_async
async def test_a_broker_that_comes_back() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.append(TP, batch(b"1"))
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert await read(fetcher, 1) == [b"1"]
            port = cluster.listeners[0].port
            await cluster.stop_broker(0)
            reading = asyncio.create_task(read(fetcher, 1))
            await asyncio.sleep(0.03)
            logs.append(TP, batch(b"2"))
            await cluster.start_broker(0, port)
            assert await reading == [b"2"]


@run_async
async def test_trouble_that_lasts_is_told() -> None:
    async with (
        ScriptedCluster() as cluster,
        connection_to(cluster, timeout_s=0.1) as connection,
    ):
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.refuse = lambda visit: ErrorCode.NOT_LEADER_OR_FOLLOWER
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            with pytest.raises(KafkaError, match="orders-0: This broker neither leads"):
                await read(fetcher, 1)


@run_async
async def test_a_topic_that_is_deleted_is_told() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)

        def refuse(visit: Visit) -> int:
            cluster.topics.pop("orders", None)
            return ErrorCode.UNKNOWN_TOPIC_ID

        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert await fetcher.fetch(0.01) == []
            logs.refuse = refuse
            with pytest.raises(UnknownTopicError, match="There is no topic 'orders'"):
                await read(fetcher, 1)


@run_async
async def test_an_error_that_cannot_pass_is_told_at_once() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.refuse = lambda visit: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            with pytest.raises(KafkaError) as refused:
                await read(fetcher, 1)
            assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("reset", "expected"),
    [(OffsetReset.EARLIEST, b"1"), (OffsetReset.LATEST, b"3"), (OffsetReset.FAIL, None)],
)
@run_async
async def test_an_offset_that_is_not_there(reset: OffsetReset, expected: bytes | None) -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        for value in (b"0", b"1", b"2"):
            logs.append(TP, batch(value))
        logs.refuse = lambda visit: 0 if visit.offset > 0 else ErrorCode.OFFSET_OUT_OF_RANGE

        def list_offsets(call: Call) -> ListOffsetsResponse:
            offsets = {-1: 3, -2: 1}
            [topic] = call.request.topics
            found = ListOffsetsPartitionResponse(offset=offsets[topic.partitions[0].timestamp])
            logs.append(TP, batch(b"3"))
            return ListOffsetsResponse(
                topics=[ListOffsetsTopicResponse(name="orders", partitions=[found])]
            )

        cluster.script(ApiKey.LIST_OFFSETS, list_offsets)
        async with PlainFetcher(connection, offset_reset=reset) as fetcher:
            fetcher.assign({TP: 0})
            if expected is None:
                with pytest.raises(KafkaError, match="orders-0 does not have offset 0"):
                    await read(fetcher, 1)
            else:
                assert (await read(fetcher, 1))[0] == expected


@run_async
async def test_only_what_is_committed() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
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
        async with PlainFetcher(
            connection, isolation_level=IsolationLevel.READ_COMMITTED
        ) as fetcher:
            fetcher.assign({TP: 0})
            assert await read(fetcher, 2) == [b"committed", b"plain"]
        assert cluster.requests(ApiKey.FETCH)[0].isolation_level == 1


@run_async
async def test_a_batch_beyond_the_limit_is_told() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        logs.batches[TP] = [batch(b"x" * 100)]
        logs._read = lambda key, offset: logs.batches[key][0][:50]  # type: ignore[method-assign]
        async with PlainFetcher(connection, limits=FetchLimits(max_partition_bytes=50)) as fetcher:
            fetcher.assign({TP: 0})
            with pytest.raises(KafkaError, match="at offset 0 that is larger than 50 bytes"):
                await read(fetcher, 1)


@run_async
async def test_a_broker_without_topic_ids_is_asked_by_name() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        cluster.has_topic_ids = False
        logs = ScriptedLogs(cluster)
        logs.append(TP, batch(b"1"))
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert await read(fetcher, 1) == [b"1"]
        versions = {call.version for call in cluster.calls if call.api_key is ApiKey.FETCH}
        assert versions == {12}


@run_async
async def test_a_session_that_the_broker_forgot_is_begun_again() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
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
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert await read(fetcher, 2) == [b"1", b"2"]
        epochs = [request.session_epoch for request in cluster.requests(ApiKey.FETCH)]
        assert epochs[:3] == [0, 1, 0]


@run_async
async def test_a_busy_partition_does_not_keep_others_from_their_turn() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0, 0]
        logs = ScriptedLogs(cluster)
        for partition in (TP, OTHER):
            for _ in range(3):
                logs.append(partition, batch(b"%d" % partition.partition))
        answer = cluster._scripts[ApiKey.FETCH]

        def only_the_first(call: Call) -> FetchResponse:
            """A broker whose answer has room for one partition."""
            response = answer(call)
            assert isinstance(response, FetchResponse)
            del response.responses[0].partitions[1:]
            return response

        cluster.script(ApiKey.FETCH, only_the_first)
        async with PlainFetcher(connection, use_sessions=False) as fetcher:
            fetcher.assign({TP: 0, OTHER: 0})
            assert await read(fetcher, 6) == [b"0", b"1", b"0", b"1", b"0", b"1"]
            fetcher.unassign([TP])
            assert fetcher.positions == {OTHER: 3}


@run_async
async def test_without_partitions_nothing_comes() -> None:
    async with (
        ScriptedCluster() as cluster,
        connection_to(cluster) as connection,
        PlainFetcher(connection) as fetcher,
    ):
        assert await fetcher.fetch(0.01) == []
        with pytest.raises(InvariantViolation, match="wait for ever"):
            await fetcher.fetch()


@run_async
async def test_an_error_of_one_partition_does_not_cost_the_data_of_another() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0, 0]
        logs = ScriptedLogs(cluster)
        logs.append(TP, batch(b"good"))
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        logs.refuse = lambda visit: denied if visit.topic_partition == OTHER else 0
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({OTHER: 0, TP: 0})
            assert await read(fetcher, 1) == [b"good"]
            with pytest.raises(KafkaError, match="orders-1"):
                await fetcher.fetch(5.0)


@run_async
async def test_giving_up_on_a_fetch_loses_nothing() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        for number in range(100):
            logs.append(TP, batch(b"%d" % number))
        found: list[bytes | None] = []
        generator = random.Random(5)
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            async with asyncio.timeout(20):
                while len(found) < 100:
                    fetching = asyncio.create_task(fetcher.fetch(1.0))
                    await asyncio.sleep(generator.random() * 0.002)
                    if generator.random() < 0.5:
                        fetching.cancel()
                    try:
                        fetched = await fetching
                    except asyncio.CancelledError:
                        continue
                    found += [record.value for one in fetched for record in one.records()]
        assert found == [b"%d" % number for number in range(100)]


@run_async
async def test_data_that_come_after_another_offset_was_chosen_are_dropped() -> None:
    async with ScriptedCluster() as cluster, connection_to(cluster) as connection:
        cluster.topics["orders"] = [0]
        logs = ScriptedLogs(cluster)
        for number in range(3):
            logs.append(TP, batch(b"%d" % number))
        async with PlainFetcher(connection) as fetcher:
            fetcher.assign({TP: 0})
            assert await read(fetcher, 1) == [b"0"]
            # The second batch has been asked for by now.
            fetcher.assign({TP: 0})
            assert await read(fetcher, 3) == [b"0", b"1", b"2"]
