"""Requests that come piece by piece, and how they share the memory for requests."""

import asyncio

import pytest

from headwater.net.connection import Connection
from headwater.net.exchange import Exchange
from headwater.net.frame_protocol import STAGE_SIZE, WHOLE_SIZE
from headwater.net.limits import ConnectionLimits
from tests.support.fakes.peers.transports import FakeTransport, frame, turns

LARGE = 8 * WHOLE_SIZE


class _Peers:
    """Connections that share limits; what comes whole is answered with nothing."""

    def __init__(self, queued_bytes_max: int) -> None:
        self.limits = ConnectionLimits(queued_bytes_max=queued_bytes_max)
        self.budget = self.limits.budget
        self.sizes: list[int] = []

    def connect(self) -> FakeTransport:
        transport = FakeTransport()
        transport.connect(Connection(self._handle, self.limits))
        return transport

    def _handle(self, exchange: Exchange) -> None:
        self.sizes.append(len(exchange.frame))
        exchange.answer_nothing()


def _claim(size: int) -> bytes:
    return size.to_bytes(4, "big")


def test_a_request_is_charged_with_what_has_come_and_not_with_its_length() -> None:
    async def run() -> None:
        peers = _Peers(2**40)
        transport = peers.connect()
        transport.receive(_claim(LARGE))
        assert peers.budget.held_bytes == STAGE_SIZE
        transport.receive(bytes(STAGE_SIZE))
        assert peers.budget.held_bytes == WHOLE_SIZE
        transport.receive(bytes(WHOLE_SIZE - STAGE_SIZE))
        assert peers.budget.held_bytes == 2 * WHOLE_SIZE
        transport.receive(bytes(LARGE - WHOLE_SIZE))
        assert peers.sizes == [LARGE]
        assert peers.budget.held_bytes == 0

    asyncio.run(run())


def test_large_requests_that_do_not_fit_together_come_in_one_after_the_other() -> None:
    """Each has a part of the memory, and none could go on: one is let over the bound."""

    async def run() -> None:
        peers = _Peers(6 * WHOLE_SIZE)
        transports = [peers.connect() for _ in range(4)]
        streams = [memoryview(frame(bytes(LARGE + index))) for index in range(4)]
        taken = [0] * 4
        peak = 0
        while len(peers.sizes) < 4:
            before = list(taken)
            for index, transport in enumerate(transports):
                # They come at the same pace, for as long as they are read from.
                piece = streams[index][taken[index] : taken[index] + WHOLE_SIZE // 4]
                taken[index] += transport.receive(bytes(piece))
                peak = max(peak, peers.budget.held_bytes)
            await turns(3)
            assert taken != before or len(peers.sizes) == 4, "nobody goes on"
        assert sorted(peers.sizes) == [LARGE + index for index in range(4)]
        assert peak <= 6 * WHOLE_SIZE + LARGE + 4
        assert peers.budget.held_bytes == 0

    asyncio.run(run())


def test_who_sends_no_more_is_ended_while_others_wait_and_who_goes_on_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headwater.net.receive_budget.RELIEF_INTERVAL_S", 0.05)

    async def run() -> None:
        peers = _Peers(4 * WHOLE_SIZE)
        stuck, dripping, steady, waiting = (peers.connect() for _ in range(4))
        for transport in (stuck, steady, dripping):
            transport.receive(_claim(LARGE) + bytes(STAGE_SIZE))
        assert waiting.receive(_claim(WHOLE_SIZE)) == 4
        assert waiting.is_reading_paused
        peers.connect().receive(frame(b"a small one"))
        assert peers.sizes == [len(b"a small one")], "large ones in pieces do not keep it out"
        left = {steady: LARGE - STAGE_SIZE, waiting: WHOLE_SIZE}
        for _ in range(1000):
            if WHOLE_SIZE in peers.sizes:
                break
            for transport in left:
                left[transport] -= transport.receive(bytes(min(left[transport], WHOLE_SIZE // 8)))
            dripping.receive(b"x")
            await asyncio.sleep(0.001)
        assert stuck.is_closed, "it held memory that others waited for"
        assert WHOLE_SIZE in peers.sizes
        assert not steady.is_closed

    asyncio.run(run())


def test_who_waits_is_not_ended() -> None:
    """Neither is one that holds much, if it is this broker that does not read on."""

    async def run() -> None:
        held: list[Exchange] = []
        limits = ConnectionLimits(queued_bytes_max=WHOLE_SIZE)
        transports = [FakeTransport() for _ in range(2)]
        for transport in transports:
            transport.connect(Connection(held.append, limits))
        transports[0].receive(frame(bytes(WHOLE_SIZE)))
        transports[1].receive(frame(b"one that waits"))
        limits.budget._relieve()
        limits.budget._relieve()
        assert not any(transport.was_aborted for transport in transports)
        held[0].answer_nothing()
        await turns()
        assert [len(each.frame) for each in held] == [WHOLE_SIZE, 14]

    asyncio.run(run())
