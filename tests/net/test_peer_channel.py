"""Peer channels, to a small broker on real sockets and on the simulated network."""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from random import Random

import pytest

from headwater.base.randomness import SeededRandom
from headwater.net.limits import ConnectionLimits
from headwater.net.listener import Endpoint, Listener
from headwater.net.peer_channel import (
    PeerChannel,
    PeerTimeoutError,
    PeerUnavailableError,
    UnsupportedVersionError,
)
from headwater.sim.network.network import NetworkConditions, SimulatedNetwork
from headwater.sim.process import SimulatedProcess
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import MalformedMessageError
from headwater.wire.messages.fetch import FetchRequest, FetchResponse
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.fakes.peers.broker import FakeBroker, until
from tests.support.fakes.peers.transports import RUNNERS
from tests.support.tiers import rounds

_IN_THREAD = " and a thread"
_receives_in_thread = ContextVar("receives in thread", default=False)

#: Also with channels whose answers a thread receives, which nobody should notice.
on_both_loops = pytest.mark.parametrize(
    "loop", [*RUNNERS, *(name + _IN_THREAD for name in RUNNERS)]
)


def _run(loop: str, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        _receives_in_thread.set(loop.endswith(_IN_THREAD))
        async with asyncio.timeout(60):
            await test()

    RUNNERS[loop.removesuffix(_IN_THREAD)](run())


@asynccontextmanager
async def _connected(broker: FakeBroker) -> AsyncIterator[PeerChannel]:
    endpoint = Endpoint("TEST", "127.0.0.1", 0)
    listener = await Listener.start(endpoint, broker, ConnectionLimits())
    channel = await PeerChannel.connect("127.0.0.1", listener.port, client_id="me", timeout_s=10)
    if _receives_in_thread.get():
        channel.receive_in_thread()
    try:
        yield channel
    finally:
        await channel.close()
        await listener.close(grace_s=0)


def _ask(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


async def _name(channel: PeerChannel, name: str, timeout_s: float = 10) -> str | None:
    response = await channel.send(_ask(name), timeout_s=timeout_s)
    assert isinstance(response, MetadataResponse)
    return response.cluster_id


@on_both_loops
def test_a_request_gets_its_response_in_the_highest_common_version(loop: str) -> None:
    async def test() -> None:
        async with _connected(FakeBroker()) as channel:
            assert await _name(channel, "now") == "now"
            assert channel.versions[ApiKey.METADATA] == MetadataRequest.VERSIONS
            assert channel.version_of(_ask("x")) == MetadataRequest.VERSIONS.highest
            assert not channel.is_closed
            assert channel.api_versions.api_keys
            lowest = await channel.send(_ask("now"), version=2, timeout_s=10)
            assert lowest.cluster_id == "now"
            with pytest.raises(UnsupportedVersionError):
                await channel.send(_ask("now"), version=99, timeout_s=10)

    _run(loop, test)


@on_both_loops
def test_many_requests_may_be_under_way(loop: str) -> None:
    async def test() -> None:
        async with _connected(FakeBroker()) as channel:
            futures = [channel.send_nowait(_ask(f"t{number}")) for number in range(300)]
            responses = await asyncio.gather(*futures)
            assert [each.cluster_id for each in responses] == [f"t{n}" for n in range(300)]
            assert channel.pending_count == 0

    _run(loop, test)


@on_both_loops
def test_a_request_that_is_given_up_disturbs_no_other(loop: str) -> None:
    async def test() -> None:
        broker = FakeBroker()
        async with _connected(broker) as channel:
            first = channel.send_nowait(_ask("hold 1"))
            second = channel.send_nowait(_ask("hold 2"))
            third = channel.send_nowait(_ask("hold 3"))
            with pytest.raises(PeerTimeoutError, match=r"METADATA request within 0\.01 s"):
                await _name(channel, "hold 4", timeout_s=0.01)
            await until(lambda: len(broker.held) == 4)
            second.cancel()
            for _ in range(4):
                broker.release()
            assert (await first).cluster_id == "hold 1"
            assert (await third).cluster_id == "hold 3"
            assert await _name(channel, "now") == "now"
            assert channel.pending_count == 0

    _run(loop, test)


@on_both_loops
def test_a_lost_connection_fails_all_who_wait(loop: str) -> None:
    async def test() -> None:
        broker = FakeBroker()
        async with _connected(broker) as channel:
            waiting = [channel.send_nowait(_ask(name)) for name in ("hold", "close")]
            await until(lambda: len(broker.held) == 1)
            broker.release()
            assert (await waiting[0]).cluster_id == "hold"
            with pytest.raises(PeerUnavailableError, match="was lost"):
                await waiting[1]
            assert channel.is_closed
            with pytest.raises(PeerUnavailableError, match="is closed"):
                channel.send_nowait(_ask("now"))

    _run(loop, test)


@on_both_loops
def test_closing_fails_all_who_wait_and_may_be_repeated(loop: str) -> None:
    async def test() -> None:
        async with _connected(FakeBroker()) as channel:
            waiting = channel.send_nowait(_ask("hold"))
            await channel.close()
            with pytest.raises(PeerUnavailableError, match="was closed"):
                await waiting
            assert channel.is_closed
            await channel.close()

    _run(loop, test)


@on_both_loops
@pytest.mark.parametrize(
    ("name", "error"), [("garbage", MalformedMessageError), ("nobody", PeerUnavailableError)]
)
def test_a_peer_that_sends_garbage_is_given_up(
    loop: str, name: str, error: type[Exception]
) -> None:
    async def test() -> None:
        async with _connected(FakeBroker()) as channel:
            with pytest.raises(error):
                await _name(channel, name)
            await until(lambda: channel.is_closed)

    _run(loop, test)


@on_both_loops
def test_requests_without_an_answer_are_sent_and_waited_for_by_drain(loop: str) -> None:
    async def test() -> None:
        broker = FakeBroker()
        async with _connected(broker) as channel:
            partition = PartitionProduceData(records=b"x" * 500_000)
            request = ProduceRequest(
                acks=0,
                topic_data=[TopicProduceData(name="t", partition_data=[partition])],
            )
            for _ in range(20):
                channel.send_without_answer(request, version=9)
                await channel.drain()
            assert await _name(channel, "now") == "now"
            assert broker.seen.count("produce") == 20
            assert channel.bytes_out > 10_000_000

    _run(loop, test)


@on_both_loops
def test_a_large_response_is_received_into_one_buffer(loop: str) -> None:
    records = os.urandom(1000) * rounds(10_000, 50_000)

    async def test() -> None:
        async with _connected(FakeBroker(records)) as channel:
            response = await channel.send(FetchRequest(), timeout_s=30)
            assert isinstance(response, FetchResponse)
            view = response.responses[0].partitions[0].records
            assert isinstance(view, memoryview)
            assert view == records
            # What it is a view of is the frame itself, and is longer than the records.
            assert memoryview(view.obj).nbytes > len(records)

    _run(loop, test)
    gc.collect()


@on_both_loops
def test_nobody_there_is_unavailable(loop: str) -> None:
    async def test() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            with pytest.raises(PeerUnavailableError, match=f"127.0.0.1:{port}: Connection refused"):
                await PeerChannel.connect("127.0.0.1", port)
        with pytest.raises(PeerUnavailableError, match="host name is not known"):
            await PeerChannel.connect("no.invalid", 1)

    _run(loop, test)


@on_both_loops
def test_somebody_who_does_not_answer_is_unavailable(loop: str) -> None:
    async def test() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            bound.listen()
            with pytest.raises(PeerUnavailableError, match=r"no answer within 0\.05 s"):
                await PeerChannel.connect(*bound.getsockname(), timeout_s=0.05)

    _run(loop, test)


@on_both_loops
def test_somebody_who_hangs_up_is_unavailable(loop: str) -> None:
    async def test() -> None:
        limits = ConnectionLimits(connections_max=0)
        endpoint = Endpoint("TEST", "127.0.0.1", 0)
        listener = await Listener.start(endpoint, FakeBroker(), limits)
        with pytest.raises(PeerUnavailableError):
            await PeerChannel.connect("127.0.0.1", listener.port, timeout_s=10)
        await listener.close(grace_s=0)

    _run(loop, test)


@pytest.mark.parametrize("seed", range(rounds(10, 100)))
def test_both_ends_work_on_a_simulated_network(seed: int) -> None:
    """Random delays, pieces and losses: what is answered is answered right."""
    loop = VirtualLoop(Random(seed))
    conditions = NetworkConditions(
        random_sizes=True,
        slow_probability=0.1,
        loss_probability=0.002 if seed % 2 else 0.0,
        window_bytes=10_000,
    )
    SimulatedNetwork(loop, SeededRandom(seed), Trace(loop.time), conditions)
    broker_process = SimulatedProcess("broker", "broker.host")
    client_process = SimulatedProcess("client", "client.host")
    records = bytes(range(256)) * 80
    answered = 0

    async def serve() -> Listener:
        limits = ConnectionLimits(requests_in_flight_max=4, queued_bytes_max=100)
        return await Listener.start(Endpoint("P", "", 9092), FakeBroker(records), limits)

    async def ask() -> None:
        nonlocal answered
        channel: PeerChannel | None = None
        for number in range(30):
            try:
                if channel is None or channel.is_closed:
                    channel = await PeerChannel.connect("broker.host", 9092, timeout_s=60)
                names = [channel.send_nowait(_ask(f"t{number}.{each}")) for each in range(5)]
                fetched = channel.send_nowait(FetchRequest())
                await asyncio.wait([*names, fetched])
                results = [each.result() for each in names]
                response = fetched.result()
            except PeerUnavailableError:
                continue
            assert [each.cluster_id for each in results] == [f"t{number}.{n}" for n in range(5)]
            assert response.responses[0].partitions[0].records == records
            answered += 1
        if channel is not None:
            await channel.close()

    async def run() -> None:
        listener = await loop.create_task(serve(), context=broker_process.context)
        await loop.create_task(ask(), context=client_process.context)
        closing = loop.create_task(listener.close(grace_s=5), context=broker_process.context)
        await closing

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    assert answered == 30 if seed % 2 == 0 else answered > 0
