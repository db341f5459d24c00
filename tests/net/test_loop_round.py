"""Connections with much to do leave others their turns."""

import asyncio

from headwater.net.connection import Connection
from headwater.net.exchange import Exchange
from headwater.net.limits import ConnectionLimits
from headwater.net.loop_round import FURTHER_REQUESTS_MAX, SENT_BYTES_MAX, round_of
from tests.support.fakes.peers.transports import FakeTransport, frame, turns


def test_requests_that_came_together_are_shared_out_over_rounds() -> None:
    async def run() -> None:
        begun: list[Exchange] = []

        def answer(exchange: Exchange) -> None:
            begun.append(exchange)
            exchange.answer([frame(bytes(exchange.frame))])

        limits = ConnectionLimits()
        transports = [FakeTransport() for _ in range(3)]
        connections = [Connection(answer, limits) for _ in transports]
        count = 2 * FURTHER_REQUESTS_MAX
        stream = b"".join(frame(b"%d" % number) for number in range(count))
        for transport, connection in zip(transports, connections, strict=True):
            transport.connect(connection)
            transport.receive(stream)
        # The first of each, and of the others as many as a round has room for.
        assert len(begun) == FURTHER_REQUESTS_MAX + len(transports)
        while len(begun) < count * len(transports):
            before = len(begun)
            await turns(1)
            assert len(begun) - before <= FURTHER_REQUESTS_MAX + len(transports)
        await turns()
        for transport in transports:
            assert bytes(transport.delivered) == stream
            assert not transport.is_reading_paused

    asyncio.run(run())


def test_bytes_from_files_are_counted_by_rounds() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        this_round = round_of(loop)
        assert this_round is round_of(loop)
        this_round.sent(loop, SENT_BYTES_MAX - 1)
        assert not this_round.has_sent_enough
        this_round.sent(loop, 1)
        assert this_round.has_sent_enough
        await turns(1)
        assert not this_round.has_sent_enough

    asyncio.run(run())
