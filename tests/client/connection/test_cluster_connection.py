import asyncio
import random
import time
from collections.abc import Iterator

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import (
    BrokerUnreachableError,
    DeadlineError,
    NoBrokerError,
    UnknownBrokerError,
    UnknownTopicError,
)
from headwater.net.peer_channel import PeerTimeoutError, PeerUnavailableError
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import Call, Disconnect, FakeBrokers

#: Nobody listens there: the port is reserved for something that is long gone.
NOWHERE = "127.0.0.1:1"


def connection_to(bootstrap: str, timeout_s: float = 10.0) -> ClusterConnection:
    return ClusterConnection(
        bootstrap,
        timeout_s=timeout_s,
        policy=RetryPolicy(backoff_ms=1, backoff_max_ms=5),
        generator=random.Random(1),
    )


async def describe(connection: ClusterConnection) -> str:
    answer = await connection.ask(DescribeClusterRequest(), DescribeClusterResponse)
    return answer.cluster_id


def connection_count(cluster: FakeBrokers) -> int:
    return len(cluster.requests(ApiKey.API_VERSIONS))


@run_async
async def test_the_first_contact_fails_at_once_and_names_every_address() -> None:
    started_s = time.monotonic()
    with pytest.raises(NoBrokerError) as failed:
        async with connection_to(f"{NOWHERE},127.0.0.1:2"):
            raise AssertionError("unreachable")
    assert time.monotonic() - started_s < 5
    assert str(failed.value) == (
        "Cannot connect to 127.0.0.1:1: Connection refused. "
        "Cannot connect to 127.0.0.1:2: Connection refused."
    )


@run_async
async def test_any_bootstrap_server_will_do() -> None:
    async with (
        FakeBrokers() as cluster,
        connection_to(f"{NOWHERE},{cluster.bootstrap}") as connection,
    ):
        assert list(connection.metadata.brokers) == [0]


@run_async
async def test_something_that_is_no_broker_is_told() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(ApiKey.API_VERSIONS, lambda call: Disconnect())
        with pytest.raises(NoBrokerError, match=f"Cannot connect to {cluster.bootstrap}|was lost"):
            await connection_to(cluster.bootstrap).__aenter__()


@run_async
async def test_a_broker_is_connected_to_once() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        async with connection_to(cluster.bootstrap) as connection:
            channels = await asyncio.gather(*(connection.channel(i % 2) for i in range(10)))
            assert len({id(channel) for channel in channels}) == 2
            assert await connection.channel() in channels
        assert connection_count(cluster) == 2
        assert all(channel.is_closed for channel in channels)


@run_async
async def test_an_address_that_only_the_cluster_believes_in_is_told() -> None:
    async with FakeBrokers() as cluster:
        cluster.claimed_ports[0] = 1
        async with connection_to(cluster.bootstrap) as connection:
            with pytest.raises(BrokerUnreachableError) as failed:
                await connection.channel(0)
            assert str(failed.value) == (
                "Broker 0 cannot be reached at 127.0.0.1:1, the address that the cluster gives "
                "for it: Cannot connect to 127.0.0.1:1: Connection refused."
            )
            with pytest.raises(UnknownBrokerError, match="There is no broker 9 in the cluster"):
                await connection.channel(9)


@run_async
async def test_a_lost_connection_is_made_again() -> None:
    async with FakeBrokers() as cluster:
        fates: Iterator[bool] = iter([True, True, False])

        def answer(call: Call) -> DescribeClusterResponse | Disconnect:
            return Disconnect() if next(fates) else DescribeClusterResponse(cluster_id="back")

        cluster.script(ApiKey.DESCRIBE_CLUSTER, answer)
        async with connection_to(cluster.bootstrap) as connection:
            with pytest.raises(PeerUnavailableError):
                await describe(connection)
            assert await connection.retrying(lambda: describe(connection), "Asking") == "back"
        assert connection_count(cluster) == 3


@run_async
async def test_a_cluster_that_comes_back_is_found_again() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(
            ApiKey.DESCRIBE_CLUSTER, lambda call: DescribeClusterResponse(cluster_id="back")
        )
        async with connection_to(cluster.bootstrap) as connection:
            port = cluster.listeners[0].port
            await cluster.stop_broker(0)
            asked = asyncio.create_task(connection.retrying(lambda: describe(connection), "Asking"))
            await asyncio.sleep(0.02)
            assert not asked.done()
            await cluster.start_broker(0, port)
            assert await asked == "back"


@run_async
async def test_what_does_not_pass_ends_with_the_deadline_and_its_reason() -> None:
    async with FakeBrokers() as cluster, connection_to(cluster.bootstrap) as connection:

        async def attempt() -> None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "It is not here.")

        with pytest.raises(DeadlineError) as failed:
            await connection.retrying(attempt, "Looking", timeout_s=0.5)
        assert str(failed.value) == "Looking did not succeed within 0.5 s: It is not here."
        assert len(cluster.requests(ApiKey.METADATA)) > 1


@run_async
async def test_what_cannot_pass_is_not_repeated() -> None:
    async with FakeBrokers() as cluster, connection_to(cluster.bootstrap) as connection:
        attempts = 0

        async def attempt() -> None:
            nonlocal attempts
            attempts += 1
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)

        with pytest.raises(KafkaError):
            await connection.retrying(attempt, "Creating")
        assert attempts == 1


@run_async
async def test_a_broker_that_does_not_answer() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(ApiKey.DESCRIBE_CLUSTER, lambda call: None)
        async with connection_to(cluster.bootstrap) as connection:
            with pytest.raises(PeerTimeoutError, match=r"DESCRIBE_CLUSTER request within 0\.05 s"):
                await connection.ask(
                    DescribeClusterRequest(), DescribeClusterResponse, timeout_s=0.05
                )
            with pytest.raises(DeadlineError, match=r"Asking did not succeed within 0\.1 s\."):
                await connection.retrying(lambda: describe(connection), "Asking", timeout_s=0.1)


@run_async
async def test_an_answer_that_does_not_come_is_asked_for_again_within_the_deadline() -> None:
    async with FakeBrokers() as cluster:
        asked = 0

        def only_the_second_time(call: Call) -> DescribeClusterResponse | None:
            nonlocal asked
            asked += 1
            return None if asked == 1 else DescribeClusterResponse(cluster_id="found")

        cluster.script(ApiKey.DESCRIBE_CLUSTER, only_the_second_time)
        async with ClusterConnection(
            cluster.bootstrap, timeout_s=10.0, request_timeout_s=0.05
        ) as connection:
            assert await connection.retrying(lambda: describe(connection), "Asking") == "found"
        assert asked == 2


@run_async
async def test_a_topic_is_looked_up_once() -> None:
    async with FakeBrokers() as cluster, connection_to(cluster.bootstrap) as connection:
        cluster.topics["orders"] = [0, 0]
        for _ in range(3):
            assert len((await connection.find_topic("orders")).partitions) == 2
        assert len(cluster.requests(ApiKey.METADATA)) == 2
        with pytest.raises(UnknownTopicError, match="There is no topic 'absent'"):
            await connection.find_topic("absent")
        cluster.topic_errors["slow"] = int(ErrorCode.LEADER_NOT_AVAILABLE)
        lookup = asyncio.create_task(connection.find_topic("slow"))
        await asyncio.sleep(0.01)
        cluster.topics["slow"] = [0]
        assert (await lookup).name == "slow"


@run_async
async def test_the_version_is_bounded_by_both_sides() -> None:
    async with FakeBrokers() as cluster:
        cluster.limit_version(ApiKey.FETCH, 11)
        async with connection_to(cluster.bootstrap) as connection:
            assert await connection.highest_version(ApiKey.FETCH, 0, 12) == 11
            assert await connection.highest_version(ApiKey.PRODUCE, 0, 12) == 12
