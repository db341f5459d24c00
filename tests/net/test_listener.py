"""Listeners and connections on real sockets of this machine, on both kinds of loop."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from headwater.net.exchange import Exchange
from headwater.net.limits import ConnectionLimits
from headwater.net.listener import Endpoint, Listener, SocketOptions
from headwater.storage.disk.files import DiskFiles, FileRegion
from tests.support.fakes.peers.transports import RUNNERS, frame
from tests.support.tiers import rounds

on_both_loops = pytest.mark.parametrize("loop", RUNNERS)

Handler = Callable[[Exchange], None]


def _echo(exchange: Exchange) -> None:
    exchange.answer([frame(bytes(exchange.frame))])


@asynccontextmanager
async def _listening(
    handler: Handler = _echo, limits: ConnectionLimits | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Listener]:
    listener = await Listener.start(
        Endpoint("TEST", host, 0), handler, limits or ConnectionLimits()
    )
    try:
        yield listener
    finally:
        await listener.close(grace_s=0)


class _Client:
    """A connection whose other end is ours."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int, host: str = "127.0.0.1") -> "_Client":
        return cls(*await asyncio.open_connection(host, port))

    def send(self, body: bytes) -> None:
        self.writer.write(frame(body))

    async def receive(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def ask(self, body: bytes) -> bytes:
        self.send(body)
        return await self.receive()

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def _run(loop: str, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await test()

    RUNNERS[loop](run())


@on_both_loops
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", ""])
def test_requests_are_answered_on_every_kind_of_address(loop: str, host: str) -> None:
    async def test() -> None:
        async with _listening(host=host) as listener:
            assert listener.port == listener.endpoint.port != 0
            for target in [host] if host else ["127.0.0.1", "::1"]:
                client = await _Client.connect(listener.port, target)
                for size in (1, 1000, 70_000, 3_000_000):
                    body = bytes([size % 251]) * size
                    assert await client.ask(body) == body
                (connection,) = listener.connections
                assert connection.listener_name == "TEST"
                assert connection.peer == client.writer.get_extra_info("sockname")[:2]
                assert connection.local == client.writer.get_extra_info("peername")[:2]
                await client.close()
                await _until(lambda: not listener.connections)

    if host in ("::1", "") and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    _run(loop, test)


@on_both_loops
def test_an_occupied_port_is_named_in_the_error(loop: str) -> None:
    async def test() -> None:
        async with _listening() as listener:
            with pytest.raises(OSError) as caught:
                await Listener.start(
                    Endpoint("P", "127.0.0.1", listener.port), _echo, ConnectionLimits()
                )
            assert caught.value.strerror == (
                f"Cannot listen on 127.0.0.1:{listener.port}: "
                "the port is in use by another program."
            )

    _run(loop, test)


@on_both_loops
@pytest.mark.parametrize(
    ("host", "reason"), [("192.0.2.1", "does not have that address"), ("no.invalid", "not known")]
)
def test_an_address_that_cannot_be_had_is_an_error(loop: str, host: str, reason: str) -> None:
    async def test() -> None:
        with pytest.raises(OSError, match=reason):
            await Listener.start(Endpoint("P", host, 0), _echo, ConnectionLimits())

    _run(loop, test)


@on_both_loops
def test_a_port_can_be_had_again_at_once(loop: str) -> None:
    async def test() -> None:
        async with _listening() as first:
            client = await _Client.connect(first.port)
            await client.ask(b"x")
        second = await Listener.start(first.endpoint, _echo, ConnectionLimits())
        assert second.port == first.port
        await second.close(grace_s=0)
        await client.close()

    _run(loop, test)


@on_both_loops
def test_the_sizes_of_socket_buffers_are_set(loop: str) -> None:
    async def test() -> None:
        listener = await Listener.start(
            Endpoint("P", "127.0.0.1", 0),
            _echo,
            ConnectionLimits(),
            options=SocketOptions(send_buffer_bytes=50_000, receive_buffer_bytes=40_000),
        )
        client = await _Client.connect(listener.port)
        await client.ask(b"x")
        (connection,) = listener.connections
        accepted = connection.transport.get_extra_info("socket")
        # Linux doubles what is asked for, to have room for its own administration.
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (50_000, 100_000)
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (40_000, 80_000)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        await client.close()
        await listener.close(grace_s=0)

    _run(loop, test)


@on_both_loops
def test_connections_above_the_limits_are_closed_at_once(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        limits = ConnectionLimits(connections_max=2)
        async with _listening(limits=limits) as listener:
            clients = [await _Client.connect(listener.port) for _ in range(2)]
            for client in clients:
                await client.ask(b"x")
            refused = await _Client.connect(listener.port)
            assert await refused.is_closed()
            counters = limits.counters
            assert (counters.open, counters.created, counters.refused) == (2, 2, 1)
            await clients[0].close()
            await _until(lambda: counters.open == 1)
            again = await _Client.connect(listener.port)
            assert await again.ask(b"y") == b"y"
            limits.connections_max_per_ip = 1
            other = await _Client.connect(listener.port)
            assert await other.is_closed()
            for client in (refused, again, other, *clients):
                await client.close()

    _run(loop, test)
    # One line for both: there may be very many.
    assert [" is not accepted: there are 2 connections" in each for each in caplog.messages] == [
        True
    ]


@on_both_loops
def test_idle_connections_are_closed_and_busy_ones_are_not(loop: str) -> None:
    async def test() -> None:
        held: list[Exchange] = []
        limits = ConnectionLimits(idle_max_s=0.2)
        async with _listening(held.append, limits) as listener:
            idle = await _Client.connect(listener.port)
            waiting = await _Client.connect(listener.port)
            waiting.send(b"a long poll")
            started_s = time.monotonic()
            assert await idle.is_closed()
            assert 0.15 < time.monotonic() - started_s < 5
            await asyncio.sleep(0.3)
            (exchange,) = held
            exchange.answer([frame(b"at last")])
            assert await waiting.receive() == b"at last"
            assert await waiting.is_closed()
            await idle.close()
            await waiting.close()

    _run(loop, test)


@on_both_loops
def test_a_claim_without_bytes_is_closed_as_idle_and_gives_its_budget_back(loop: str) -> None:
    async def test() -> None:
        limits = ConnectionLimits(idle_max_s=0.2, queued_bytes_max=1000)
        async with _listening(limits=limits) as listener:
            claiming = await _Client.connect(listener.port)
            claiming.writer.write((2000).to_bytes(4, "big") + b"only this")
            await _until(lambda: limits.budget.held_bytes == 2000)
            honest = await _Client.connect(listener.port)
            assert await honest.ask(b"x") == b"x"
            assert await claiming.is_closed()
            await claiming.close()
            await honest.close()

    _run(loop, test)


@on_both_loops
def test_a_request_that_does_not_go_on_ends_its_connection(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A byte now and then is no progress; a request that comes slowly but steadily is."""

    async def test() -> None:
        limits = ConnectionLimits(receive_progress_s=0.2)
        async with _listening(limits=limits) as listener:
            dripping, steady, idle = [await _Client.connect(listener.port) for _ in range(3)]
            for client in (dripping, steady):
                client.writer.write((10 << 20).to_bytes(4, "big"))
            ended = asyncio.ensure_future(dripping.is_closed())
            while not ended.done():
                dripping.writer.write(b"x")
                steady.writer.write(bytes(16 << 10))
                await asyncio.sleep(0.01)
            assert await ended
            assert await idle.ask(b"x") == b"x"
            assert limits.counters.open == 2
            for client in (dripping, steady, idle):
                await client.close()

    _run(loop, test)
    assert [each for each in caplog.messages if "request has not gone on" in each]


@on_both_loops
def test_an_answer_that_nobody_reads_ends_its_connection(
    loop: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    size = 8 << 20
    path = tmp_path / "blob"
    path.write_bytes(bytes(size))
    file = DiskFiles().open(str(path))

    def answer(exchange: Exchange) -> None:
        length = size.to_bytes(4, "big")
        is_file = bytes(exchange.frame) == b"file"
        exchange.answer([length, FileRegion(file, 0, size)] if is_file else [length, bytes(size)])

    async def test() -> None:
        limits = ConnectionLimits(send_progress_s=0.2)
        async with _listening(answer, limits) as listener:
            with ExitStack() as stack:
                sockets = [
                    stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
                    for _ in range(3)
                ]
                for each, kind in zip(sockets, (b"file", b"bytes", b"file"), strict=True):
                    each.sendall(frame(kind))
                slow = sockets[-1]
                slow.setblocking(False)
                received = 0
                while received < size + 4:
                    piece = await asyncio.get_running_loop().sock_recv(slow, 64 << 10)
                    received += len(piece)
                    await asyncio.sleep(0.005)
                await _until(lambda: limits.counters.open == 1)

    _run(loop, test)
    assert len([each for each in caplog.messages if "has not read its answers" in each]) == 2


@on_both_loops
def test_closing_answers_what_has_come(loop: str) -> None:
    async def test() -> None:
        held: list[Exchange] = []
        async with _listening(held.append) as listener:
            client = await _Client.connect(listener.port)
            quiet = await _Client.connect(listener.port)
            client.send(b"x")
            await _until(lambda: len(held) == 1 and len(listener.connections) == 2)
            closing = asyncio.create_task(listener.close(grace_s=10))
            assert await quiet.is_closed()
            with pytest.raises(OSError):
                await _Client.connect(listener.port)
            assert not closing.done()
            held[0].answer([frame(b"the answer")])
            assert await client.receive() == b"the answer"
            assert await client.is_closed()
            await closing
            assert not listener.connections
            await client.close()
            await quiet.close()

    _run(loop, test)


@on_both_loops
def test_closing_does_not_wait_longer_than_told(loop: str) -> None:
    async def test() -> None:
        held: list[Exchange] = []
        async with _listening(held.append) as listener:
            client = await _Client.connect(listener.port)
            client.send(b"x")
            await _until(lambda: len(held) == 1)
            await listener.close(grace_s=0.05)
            assert await client.is_closed()
            held[0].answer([b"nobody hears this"])
            await client.close()

    _run(loop, test)


@on_both_loops
def test_stop_accepting_leaves_connections_alone(loop: str) -> None:
    async def test() -> None:
        async with _listening() as listener:
            client = await _Client.connect(listener.port)
            await client.ask(b"x")
            listener.stop_accepting()
            with pytest.raises(OSError):
                await _Client.connect(listener.port)
            assert await client.ask(b"y") == b"y"
            await client.close()

    _run(loop, test)


@on_both_loops
def test_many_connections_at_once(loop: str) -> None:
    count = rounds(500, 1500)

    async def test() -> None:
        limits = ConnectionLimits()
        async with _listening(limits=limits) as listener:
            clients = [await _Client.connect(listener.port) for _ in range(count)]

            async def talk(index: int, client: _Client) -> None:
                for number in range(3):
                    body = b"%d %d" % (index, number)
                    assert await client.ask(body) == body

            await asyncio.gather(*(talk(*each) for each in enumerate(clients)))
            assert limits.counters.open == count
            assert limits.counters.requests == 3 * count
            await asyncio.gather(*(client.close() for client in clients))
            await _until(lambda: limits.counters.open == 0)
            assert limits.counters.closed == count

    _run(loop, test)


@on_both_loops
def test_one_who_does_not_read_costs_little_and_delays_nobody(loop: str, tmp_path: Path) -> None:
    size = 8_000_000
    (tmp_path / "log").write_bytes(b"x" * size)
    file = DiskFiles().open(str(tmp_path / "log"))

    def handle(exchange: Exchange) -> None:
        if exchange.frame[0] == ord("F"):
            exchange.answer([size.to_bytes(4, "big"), FileRegion(file, 0, size)])
        else:
            _echo(exchange)

    async def test() -> None:
        async with _listening(handle) as listener:
            slow = socket.create_connection(("127.0.0.1", listener.port))
            for _ in range(20):
                slow.sendall(frame(b"F"))
            quick = await _Client.connect(listener.port)
            for _ in range(100):
                async with asyncio.timeout(1):
                    assert await quick.ask(b"x") == b"x"
            stuck = next(each for each in listener.connections if each.peer == slow.getsockname())
            assert stuck.bytes_out < 2 * size, "it stopped at what the socket takes"
            assert stuck.transport.get_write_buffer_size() < 1000
            # It reads after all, and gets everything.
            slow.setblocking(False)
            received = 0
            while received < 20 * (4 + size):
                received += len(await asyncio.get_running_loop().sock_recv(slow, 1 << 20))
            slow.close()
            await quick.close()

    _run(loop, test)
    file.close()
