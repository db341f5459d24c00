"""The HTTP endpoint against peers of all kinds."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.net import http_endpoint
from headwater.net.http_endpoint import (
    CONNECTIONS_MAX,
    REQUEST_BYTES_MAX,
    HttpAnswer,
    HttpEndpoint,
)

HOST = "127.0.0.1"


async def page(path: str) -> HttpAnswer | None:
    if path == "/fails":
        raise RuntimeError("no page today")
    return HttpAnswer(b"hello\n") if path == "/page" else None


def serve(scenario: Callable[[HttpEndpoint], Awaitable[None]], *, fast_loop: bool = False) -> None:
    async def run() -> None:
        endpoint = await HttpEndpoint.start(HOST, 0, page)
        try:
            await asyncio.wait_for(scenario(endpoint), 30)
        finally:
            endpoint.close()

    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop if fast_loop else None)
    with runner:
        runner.run(run())


async def exchange(endpoint: HttpEndpoint, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, endpoint.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("fast_loop", [False, True])
def test_pages(fast_loop: bool) -> None:
    async def scenario(endpoint: HttpEndpoint) -> None:
        answer = await exchange(endpoint, b"GET /page?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n") and body == b"hello\n"
        assert b"Content-Length: 6\r\n" in head and b"Connection: close" in head
        answer = await exchange(endpoint, b"HEAD /page HTTP/1.0\r\n\r\n")
        assert b"Content-Length: 6\r\n" in answer and answer.endswith(b"\r\n\r\n")
        assert (await exchange(endpoint, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
        assert not endpoint.connections or await _gone(endpoint)

    serve(scenario, fast_loop=fast_loop)


async def _gone(endpoint: HttpEndpoint) -> bool:
    for _ in range(1000):
        if not endpoint.connections:
            return True
        await asyncio.sleep(0.005)
    return False


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /page HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /page\r\n\r\n", b"400"),
        (b"GET  /page HTTP/1.1\r\n\r\n", b"400"),
        (b"\x00\x00\x00\x1f\x00\x03\r\n\r\n", b"400"),
        (b"GET /fails HTTP/1.1\r\n\r\n", b"500"),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"404"),
        (b"x" * (REQUEST_BYTES_MAX + 1), b"431"),
        (b"GET / HTTP/1.1\r\nx: " + b"x" * REQUEST_BYTES_MAX + b"\r\n\r\n", b"431"),
    ],
)
def test_requests_that_are_not_answered_with_a_page(request_bytes: bytes, status: bytes) -> None:
    async def scenario(endpoint: HttpEndpoint) -> None:
        answer = await exchange(endpoint, request_bytes)
        assert answer.startswith(b"HTTP/1.1 " + status)

    serve(scenario)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=6))
def test_garbage_does_not_disturb_others(pieces: list[bytes]) -> None:
    async def scenario(endpoint: HttpEndpoint) -> None:
        await exchange(endpoint, *pieces, b"\r\n\r\n")
        answer = await exchange(endpoint, b"GET /page HTTP/1.1\r\n\r\n")
        assert answer.endswith(b"hello\n")

    serve(scenario)


def test_a_request_may_come_in_single_bytes() -> None:
    async def scenario(endpoint: HttpEndpoint) -> None:
        request = b"GET /page HTTP/1.1\r\n\r\n"
        answer = await exchange(endpoint, *(request[i : i + 1] for i in range(len(request))))
        assert answer.endswith(b"hello\n")

    serve(scenario)


@pytest.mark.parametrize("fast_loop", [False, True])
def test_one_who_sends_nothing_or_reads_nothing_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, fast_loop: bool
) -> None:
    monkeypatch.setattr(http_endpoint, "CONNECTION_S_MAX", 0.2)
    monkeypatch.setattr(http_endpoint, "REQUEST_S_MAX", 0.2)

    async def large(path: str) -> HttpAnswer:
        return HttpAnswer(b"x" * (64 << 20))

    async def scenario(endpoint: HttpEndpoint) -> None:
        reader, silent = await asyncio.open_connection(HOST, endpoint.port)
        endpoint.handler = large
        _, greedy = await asyncio.open_connection(HOST, endpoint.port, limit=1 << 10)
        greedy.write(b"GET /page HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        assert await _gone(endpoint)
        for writer in (silent, greedy):
            writer.transport.abort()

    serve(scenario, fast_loop=fast_loop)


@pytest.mark.parametrize("fast_loop", [False, True])
@pytest.mark.parametrize("sent", [b"", b"GET /page HT", b"GET /slow HTTP/1.1\r\n\r\n"])
def test_however_many_there_are_a_newcomer_gets_through(fast_loop: bool, sent: bytes) -> None:
    slow = asyncio.Event()

    async def answer(path: str) -> HttpAnswer | None:
        if path == "/slow":
            await slow.wait()
        return await page(path)

    async def scenario(endpoint: HttpEndpoint) -> None:
        endpoint.handler = answer
        held = []
        for _ in range(CONNECTIONS_MAX + 10):
            _, writer = await asyncio.open_connection(HOST, endpoint.port)
            writer.write(sent)
            held.append(writer)
        for _ in range(3):
            answered = await exchange(endpoint, b"GET /page HTTP/1.1\r\n\r\n")
            assert answered.endswith(b"hello\n")
            assert len(endpoint.connections) <= CONNECTIONS_MAX
        slow.set()
        for writer in held:
            writer.transport.abort()
        assert await _gone(endpoint)

    serve(scenario, fast_loop=fast_loop)


def test_a_request_in_drops_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_endpoint, "REQUEST_S_MAX", 0.2)

    async def scenario(endpoint: HttpEndpoint) -> None:
        reader, writer = await asyncio.open_connection(HOST, endpoint.port)
        ended = asyncio.ensure_future(reader.read())
        while not ended.done():
            writer.write(b"x")
            await asyncio.sleep(0.01)
        with contextlib.suppress(ConnectionError):
            assert await ended == b""
        writer.transport.abort()
        assert await _gone(endpoint)

    serve(scenario)


def test_an_occupied_port_is_named() -> None:
    async def scenario(endpoint: HttpEndpoint) -> None:
        with pytest.raises(OSError, match=f"Cannot listen on {HOST}:{endpoint.port}"):
            await HttpEndpoint.start(HOST, endpoint.port, page)

    serve(scenario)


def test_close_lets_go_of_everybody() -> None:
    async def scenario(endpoint: HttpEndpoint) -> None:
        reader, writer = await asyncio.open_connection(HOST, endpoint.port)
        await exchange(endpoint, b"GET /page HTTP/1.1\r\n\r\n")
        endpoint.close()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        assert await _gone(endpoint)
        assert endpoint.port == 0

    serve(scenario)
