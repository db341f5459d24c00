import asyncio
import logging
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.net.connection import Connection
from headwater.net.exchange import Exchange
from headwater.net.limits import ConnectionLimits
from tests.support.fakes.peers.transports import FakeTransport, frame, turns


class _Held:
    """A handler that keeps the exchanges, for the test to complete."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def __call__(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)


def _connect(
    handler: Callable[[Exchange], None],
    limits: ConnectionLimits | None = None,
    *,
    room: int = 2**60,
) -> tuple[Connection, FakeTransport]:
    connection = Connection(handler, limits or ConnectionLimits())
    transport = FakeTransport(room=room)
    transport.connect(connection)
    return connection, transport


def _echo(exchange: Exchange) -> None:
    exchange.answer([frame(bytes(exchange.frame))])


@given(
    outcomes=st.lists(st.sampled_from(["answer", "nothing", "disconnect"]), min_size=1),
    data=st.data(),
)
def test_answers_leave_in_the_order_of_requests_however_they_are_completed(
    outcomes: list[str], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(outcomes))))
    expected = b""
    for index, outcome in enumerate(outcomes):
        if outcome == "disconnect":
            break
        if outcome == "answer":
            expected += frame(b"answer %d" % index)

    async def run() -> None:
        held = _Held()
        limits = ConnectionLimits()
        connection, transport = _connect(held, limits)
        transport.receive(b"".join(frame(b"%d" % index) for index in range(len(outcomes))))
        assert [bytes(each.frame) for each in held.exchanges] == [
            b"%d" % index for index in range(len(outcomes))
        ]
        for index in order:
            exchange = held.exchanges[index]
            if outcomes[index] == "answer":
                exchange.answer([frame(b"answer %d" % index)])
            elif outcomes[index] == "nothing":
                exchange.answer_nothing()
            else:
                exchange.disconnect("the test wants it")
            if data.draw(st.booleans()):
                await turns(1)
        await turns()
        assert bytes(transport.delivered) == expected
        assert connection.is_closed == ("disconnect" in outcomes)
        assert limits.budget.held_bytes == 0
        assert connection.pending_count == 0
        assert limits.counters.open == (not connection.is_closed)

    asyncio.run(run())


def test_requests_that_come_together_are_answered_in_one_write() -> None:
    async def run() -> None:
        connection, transport = _connect(_echo)
        stream = b"".join(frame(b"%d" % index) for index in range(50))
        transport.receive(stream)
        assert bytes(transport.delivered) == stream
        assert transport.write_count == 1
        assert (connection.bytes_in, connection.bytes_out) == (len(stream), len(stream))
        assert connection.requests == 50

    asyncio.run(run())


def test_answers_that_are_ready_together_are_one_write_too() -> None:
    async def run() -> None:
        held = _Held()
        _, transport = _connect(held)
        for index in range(5):
            transport.receive(frame(b"%d" % index))
        for exchange in held.exchanges:
            exchange.answer([frame(bytes(exchange.frame))])
        await turns()
        assert bytes(transport.delivered) == b"".join(frame(b"%d" % index) for index in range(5))
        assert transport.write_count == 1

    asyncio.run(run())


def test_an_exchange_is_completed_once() -> None:
    async def run() -> None:
        held = _Held()
        _, transport = _connect(held)
        transport.receive(frame(b"x"))
        (exchange,) = held.exchanges
        exchange.answer_nothing()
        for again in (exchange.answer_nothing, lambda: exchange.disconnect("again")):
            with pytest.raises(InvariantError):
                again()

    asyncio.run(run())


@pytest.mark.parametrize("size", [0, -1, 1001, 2**31 - 1])
def test_an_absurd_length_ends_the_connection_with_one_line(
    size: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        limits = ConnectionLimits(request_size_max=1000)
        connection, transport = _connect(_echo, limits)
        transport.receive(frame(b"fine") + size.to_bytes(4, "big", signed=True) + b"x" * 50)
        assert transport.receive(frame(b"more")) == 0
        await turns()
        assert connection.is_closed
        assert transport.was_aborted
        assert limits.budget.held_bytes == 0

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert [f"announces a request of {size} bytes" in each for each in caplog.messages] == [True]


def test_a_handler_that_fails_ends_its_connection_and_gives_its_memory_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        def fail(exchange: Exchange) -> None:
            raise ValueError("a mistake")

        limits = ConnectionLimits()
        connection, transport = _connect(fail, limits)
        transport.receive(frame(b"x") + frame(b"y"))
        await turns()
        assert connection.is_closed
        assert connection.requests == 1
        assert limits.budget.held_bytes == 0

    asyncio.run(run())
    assert len(caplog.records) == 1
    assert "the handler of its request failed" in caplog.messages[0]


def test_reading_pauses_at_the_bound_of_requests_in_flight() -> None:
    async def run() -> None:
        held = _Held()
        limits = ConnectionLimits(requests_in_flight_max=3)
        _, transport = _connect(held, limits)
        stream = b"".join(frame(b"%d" % index) for index in range(10))
        transport.receive(stream)
        for index in range(10):
            assert len(held.exchanges) == min(index + 3, 10)
            assert transport.is_reading_paused == (index + 3 < 10)
            held.exchanges[index].answer([frame(bytes(held.exchanges[index].frame))])
            await turns()
        assert bytes(transport.delivered) == stream

    asyncio.run(run())


def test_no_handler_runs_inside_of_an_answer() -> None:
    async def run() -> None:
        depth = 0

        def handle(exchange: Exchange) -> None:
            assert depth == 0
            exchanges.append(exchange)

        exchanges: list[Exchange] = []
        limits = ConnectionLimits(requests_in_flight_max=1, queued_bytes_max=1)
        first = _connect(handle, limits)[1]
        second = _connect(handle, limits)[1]
        for transport in (first, second):
            transport.receive(frame(b"1") + frame(b"2"))
        for index in range(4):
            depth = 1
            exchanges[index].answer_nothing()
            depth = 0
            await turns()
        assert len(exchanges) == 4

    asyncio.run(run())


def test_requests_of_all_connections_together_stay_within_the_budget() -> None:
    async def run() -> None:
        held = _Held()
        limits = ConnectionLimits(queued_bytes_max=100)
        pairs = [_connect(held, limits) for _ in range(10)]
        for index, (_, transport) in enumerate(pairs):
            transport.receive(frame(bytes([index]) * 40) + frame(bytes([100 + index]) * 40))
        seen = 0
        while seen < 20:
            assert limits.budget.held_bytes <= 100 + 40
            assert len(held.exchanges) > seen, "at least one request makes progress"
            held.exchanges[seen].answer_nothing()
            seen += 1
            await turns()
        assert limits.budget.held_bytes == 0
        assert not any(transport.is_reading_paused for _, transport in pairs)
        # First come, first served: a connection that was let in stands in line anew.
        order = [each.frame[0] for each in held.exchanges]
        assert order == [0, 100, 1, 101, *range(2, 10), *range(102, 110)]

    asyncio.run(run())


def test_a_connection_that_is_lost_gives_back_what_it_holds() -> None:
    async def run() -> None:
        held = _Held()
        limits = ConnectionLimits(queued_bytes_max=100)
        _, transport = _connect(held, limits)
        transport.receive(frame(b"x" * 30) + frame(b"y" * 50)[:20])
        other = _connect(held, limits)[1]
        other.receive(frame(b"z" * 70) + frame(b"z" * 80))
        assert limits.budget.held_bytes == 150
        transport.lose()
        await turns()
        assert limits.budget.held_bytes == 100, "a request in its handler is in memory still"
        held.exchanges[0].answer([b"too late"])
        await turns()
        assert limits.budget.held_bytes == 150
        assert [len(each.frame) for each in held.exchanges] == [30, 70, 80]
        assert transport.delivered == b""

    asyncio.run(run())


def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    async def run() -> None:
        held = _Held()
        connection, transport = _connect(held, room=10)
        transport.receive(frame(b"1") + frame(b"2") + frame(b"3"))
        for exchange in held.exchanges:
            exchange.answer([frame(b"x" * 100)])
        await turns()
        assert transport.is_reading_paused
        transport.make_room(200)
        await turns()
        assert transport.is_reading_paused, "there is something left to be read"
        transport.make_room(200)
        await turns()
        assert not transport.is_reading_paused
        assert bytes(transport.delivered) == frame(b"x" * 100) * 3
        assert connection.bytes_out == 312

    asyncio.run(run())


def test_finishing_answers_what_has_come_and_takes_no_more() -> None:
    async def run() -> None:
        held = _Held()
        connection, transport = _connect(held)
        transport.receive(frame(b"1"))
        connection.finish()
        assert transport.receive(frame(b"2")) == 0
        await turns()
        assert not connection.is_closed
        held.exchanges[0].answer([frame(b"answer")])
        await turns()
        assert connection.is_closed
        assert bytes(transport.delivered) == frame(b"answer")
        assert not transport.was_aborted

    asyncio.run(run())


def test_who_waits_for_an_exchange_hears_that_its_connection_is_lost() -> None:
    async def run() -> None:
        held = _Held()
        calls: list[int] = []
        _, transport = _connect(held)
        transport.receive(frame(b"0") + frame(b"1") + frame(b"2"))
        for index, exchange in enumerate(held.exchanges):
            exchange.on_abandoned = partial(calls.append, index)
        held.exchanges[1].answer_nothing()
        transport.lose()
        assert calls == [0, 2]

    asyncio.run(run())


def test_addresses_are_known_and_those_of_version_4_look_like_it() -> None:
    async def run() -> None:
        connection = Connection(_echo, ConnectionLimits())
        transport = FakeTransport(peer=("::ffff:10.0.0.1", 5))
        transport.connect(connection)
        assert connection.peer == ("10.0.0.1", 5)
        assert connection.local == ("192.0.2.2", 9092)

    asyncio.run(run())


def test_idle_is_measured_by_what_moves() -> None:
    async def run() -> None:
        held = _Held()
        connection, transport = _connect(held, room=1)
        transport.receive(frame(b"x"))
        assert connection.idle_s(2000.0) == 0, "bytes came"
        assert connection.idle_s(3000.0) == 0, "a request is being handled"
        held.exchanges[0].answer([b"answer"])
        assert connection.idle_s(4000.0) == 0, "bytes left"
        assert connection.idle_s(4500.0) == 500, "the peer does not read its answer"
        transport.make_room(1)
        assert connection.idle_s(5000.0) == 0

    asyncio.run(run())


@given(chunks=st.lists(st.binary(max_size=60), max_size=20))
def test_random_bytes_never_raise_out_of_the_protocol(chunks: list[bytes]) -> None:
    async def run() -> None:
        limits = ConnectionLimits(request_size_max=50, queued_bytes_max=60)
        held = _Held()
        _, transport = _connect(held, limits)
        for chunk in chunks:
            transport.receive(chunk)
            for exchange in held.exchanges:
                if not exchange.is_completed:
                    _echo(exchange)
            await turns(2)
        transport.lose()
        await turns()
        assert limits.budget.held_bytes == 0

    asyncio.run(run())
