import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.randomness import SeededRandom
from headwater.sim.network.network import NetworkConditions, SimulatedNetwork
from headwater.sim.network.transport import SimulatedTransport
from headwater.sim.process import SimulatedProcess
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop

PORT = 9092


class Collector(asyncio.Protocol):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.events: list[str] = []
        self.transport: SimulatedTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimulatedTransport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        assert self.events[0] == "made"
        self.data += data

    def eof_received(self) -> bool:
        self.events.append("end")
        return False

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append("lost" if error is None else type(error).__name__)


class SmallBuffer(asyncio.BufferedProtocol):
    """Reads seven bytes at a time and sends them back."""

    def __init__(self) -> None:
        self.buffer = bytearray(7)
        self.transport: SimulatedTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimulatedTransport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(self.buffer[:nbytes])


class World:
    def __init__(self, seed: int = 1, conditions: NetworkConditions | None = None) -> None:
        random = SeededRandom(seed)
        self.loop = VirtualLoop(Random(seed), timer_lateness_ms=1)
        self.trace = Trace(self.loop.time)
        self.network = SimulatedNetwork(self.loop, random.child("network"), self.trace, conditions)
        self.server = self.loop.start_process("server", "10.0.0.1")
        self.client = self.loop.start_process("client", "10.0.0.2")
        self.accepted: list[Collector] = []

    def accept(self) -> Collector:
        self.accepted.append(Collector())
        return self.accepted[-1]

    def run_as(self, process: SimulatedProcess, work: Coroutine[object, object, None]) -> None:
        """Run work to its end as one of the processes."""
        self.loop.run_until_complete(process.run(self.loop.create_task, work))

    def listen(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        async def start() -> None:
            await self.loop.create_server(factory, None, PORT)

        self.run_as(self.server, start())

    def connect(self) -> Collector:
        made: list[Collector] = []

        async def start() -> None:
            _, protocol = await self.loop.create_connection(Collector, "10.0.0.1", PORT)
            assert isinstance(protocol, Collector)
            made.append(protocol)

        self.run_as(self.client, start())
        return made[0]

    def let_pass(self, seconds: float = 60) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@contextlib.contextmanager
def world(seed: int = 1, conditions: NetworkConditions | None = None) -> Iterator[World]:
    made = World(seed, conditions)
    try:
        yield made
        assert not made.loop.unhandled
    finally:
        made.loop.close()


def test_both_ends_know_the_addresses() -> None:
    with world() as each:
        each.listen(each.accept)
        client = each.connect()
        each.let_pass()
        server = each.accepted[0]
        assert client.transport.get_extra_info("peername") == ("10.0.0.1", PORT)
        assert server.transport.get_extra_info("sockname") == ("10.0.0.1", PORT)
        assert server.transport.get_extra_info("peername") == client.transport.get_extra_info(
            "sockname"
        )
        assert client.transport.get_extra_info("socket") is None


@given(
    seed=st.integers(0, 10**6),
    pieces=st.lists(st.binary(min_size=1, max_size=3_000), max_size=8),
    packet_bytes_max=st.integers(1, 1_500),
    window_bytes=st.integers(100, 5_000),
)
def test_what_is_sent_comes_back_whole_and_in_order(
    seed: int, pieces: list[bytes], packet_bytes_max: int, window_bytes: int
) -> None:
    conditions = NetworkConditions(
        slow_probability=0.2,
        packet_bytes_max=packet_bytes_max,
        random_sizes=True,
        window_bytes=window_bytes,
    )
    with world(seed, conditions) as each:
        each.listen(SmallBuffer)
        client = each.connect()
        for piece in pieces:
            client.transport.write(piece)
        each.let_pass(10_000)
        assert bytes(client.data) == b"".join(pieces)
        assert client.events[-1] in ("made", "resume")


def test_one_seed_gives_one_trace() -> None:
    def run(seed: int) -> str:
        conditions = NetworkConditions(random_sizes=True, loss_probability=0.02)
        with world(seed, conditions) as each:
            each.listen(SmallBuffer)
            for _ in range(5):
                each.connect().transport.write(bytes(20_000))
            each.let_pass()
            return each.trace.hash

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_close_sends_what_is_buffered_and_then_the_end() -> None:
    with world(conditions=NetworkConditions(window_bytes=1000)) as each:
        each.listen(each.accept)
        client = each.connect()
        client.transport.write(bytes(50_000))
        client.transport.close()
        client.transport.write(b"too late")
        assert client.transport.is_closing()
        each.let_pass()
        assert len(each.accepted[0].data) == 50_000
        assert each.accepted[0].events == ["made", "end", "lost"]
        assert client.events == ["made", "lost"]


def test_an_end_that_keeps_open_can_still_answer() -> None:
    class Answering(Collector):
        def eof_received(self) -> bool:
            self.transport.write(b"answer to " + self.data)
            return True

    with world() as each:
        each.listen(Answering)
        client = each.connect()
        client.transport.write(b"question")
        client.transport.write_eof()
        with pytest.raises(RuntimeError, match="after write_eof"):
            client.transport.write(b"more")
        each.let_pass()
        assert client.data == b"answer to question"
        assert client.events == ["made"]


def test_abort_resets_the_other_end() -> None:
    with world() as each:
        each.listen(each.accept)
        client = each.connect()
        each.let_pass(1)
        client.transport.write(b"some bytes")
        client.transport.abort()
        each.let_pass()
        assert each.accepted[0].events == ["made", "ConnectionResetError"]
        assert client.events == ["made", "lost"]


def test_data_for_an_end_that_is_closed_is_answered_with_a_reset() -> None:
    with world() as each:
        each.listen(each.accept)
        client = each.connect()
        each.let_pass(1)
        each.network.cut("10.0.0.1", "10.0.0.2")
        each.accepted[0].transport.close()
        each.let_pass(1)
        client.transport.write(b"nobody reads this")
        each.let_pass(1)
        each.network.heal()
        each.let_pass()
        assert client.events[:1] == ["made"] and client.events[-1] in (
            "lost",
            "ConnectionResetError",
        )


def test_a_reader_that_pauses_holds_up_the_writer() -> None:
    with world(conditions=NetworkConditions(window_bytes=10_000)) as each:
        each.listen(each.accept)
        client = each.connect()
        each.let_pass(1)
        server = each.accepted[0]
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=20_000, low=5_000)
        client.transport.write(bytes(100_000))
        each.let_pass()
        assert client.events == ["made", "pause"]
        assert client.transport.get_write_buffer_size() == 90_000
        assert not server.data
        server.transport.resume_reading()
        each.let_pass()
        assert client.events == ["made", "pause", "resume"]
        assert len(server.data) == 100_000


def test_a_partition_holds_packets_back_and_healing_brings_them() -> None:
    with world() as each:
        each.listen(each.accept)
        client = each.connect()
        each.network.cut("10.0.0.2", "10.0.0.1")
        client.transport.write(b"one ")
        client.transport.write(b"two")
        each.let_pass(3600)
        assert each.accepted[0].data == b""
        with pytest.raises(TimeoutError):
            each.connect()
        each.network.heal()
        each.let_pass()
        assert each.accepted[0].data == b"one two"


def test_lost_packets_lose_the_connection_at_both_ends() -> None:
    with world(conditions=NetworkConditions(loss_probability=1.0)) as each:
        each.listen(each.accept)
        client = each.connect()
        client.transport.write(b"gone")
        each.let_pass()
        assert client.events == each.accepted[0].events == ["made", "ConnectionResetError"]
        assert each.accepted[0].data == b""


def test_the_peer_of_a_dead_process_hears_of_it_and_the_port_is_free() -> None:
    with world(conditions=NetworkConditions(silence_ms_max=5_000)) as each:
        each.listen(each.accept)
        client = each.connect()
        each.let_pass(1)
        each.server.kill()
        client.transport.write(b"anybody?")
        each.let_pass(6)
        assert client.events == ["made", "ConnectionResetError"]
        assert each.accepted[0].events == ["made"]
        with pytest.raises(ConnectionRefusedError):
            each.connect()
        each.server = each.loop.start_process("server again", "10.0.0.1")
        each.listen(each.accept)
        assert each.connect().events == ["made"]


def test_packets_of_a_dead_process_still_arrive() -> None:
    with world(conditions=NetworkConditions(silence_ms_max=60_000)) as each:
        each.listen(each.accept)
        client = each.connect()
        client.transport.write(b"last words")
        each.client.kill()
        each.let_pass(0.5)
        assert each.accepted[0].data == b"last words"


def test_an_occupied_port_and_a_foreign_address_are_refused() -> None:
    with world() as each:
        each.listen(each.accept)
        with pytest.raises(OSError, match="in use"):
            each.listen(each.accept)

        async def listen_elsewhere() -> None:
            await each.loop.create_server(each.accept, "10.0.0.2", PORT)

        with pytest.raises(OSError, match="assign"):
            each.run_as(each.server, listen_elsewhere())


def test_a_server_that_closes_accepts_no_more() -> None:
    with world() as each:

        async def listen() -> None:
            server = await each.loop.create_server(each.accept, "0.0.0.0", 0)
            host, port = server.sockets[0].getsockname()
            transport, _ = await each.loop.create_connection(Collector, host, port)
            assert server.is_serving()
            server.close()
            await server.wait_closed()
            assert not server.is_serving() and server.sockets == ()
            with pytest.raises(ConnectionRefusedError):
                await each.loop.create_connection(Collector, "localhost", port)
            transport.write(b"still there")

        each.run_as(each.server, listen())
        each.let_pass()
        assert each.accepted[0].data == b"still there"


def test_a_protocol_that_fails_loses_its_connection_and_is_reported() -> None:
    class Failing(Collector):
        def data_received(self, data: bytes) -> None:
            raise ValueError("cannot read this")

    made = World()
    made.listen(Failing)
    client = made.connect()
    client.transport.write(b"x")
    made.let_pass()
    assert client.events == ["made", "ConnectionResetError"]
    assert [str(each["exception"]) for each in made.loop.unhandled] == ["cannot read this"]
    made.loop.close()


def test_behind_a_gap_nothing_arrives() -> None:
    with world() as each:
        each.listen(each.accept)
        client = each.connect()
        each.let_pass(1)
        client.transport.write(b"lost ")
        each.network.break_connection(client.transport)
        client.transport.write(b"and what follows")
        each.let_pass()
        assert each.accepted[0].data == b""
        assert each.accepted[0].events == ["made", "ConnectionResetError"]
