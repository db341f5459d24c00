"""Measures the network layer on this machine's loopback: `python -m bench.net_loopback`.

The server runs in a child process. What counts is its processor time, of which other programs take
less away than of wall time. Its peers: for round trips a protocol on the bare event loop that reads
and writes and looks at nothing; for answers from files the same sender with sendfile turned off.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection as Pipe
from struct import pack, unpack_from
from typing import NamedTuple, Self

import uvloop

from bench.machine import Machine
from bench.rounds import Comparison, alternate
from bench.table import Row, as_markdown
from headwater.net import sender
from headwater.net.exchange import Exchange
from headwater.net.limits import ConnectionLimits
from headwater.net.listener import Endpoint, Listener, SocketOptions
from headwater.storage.disk.files import DiskFiles, FileRegion

_ANSWER = pack(">i", 20) + b"a" * 20
_REGION_POSITION = 1000
_FILE_SIZE = 17 * 1024 * 1024


class _Bare(asyncio.BufferedProtocol):
    """The least that can be done with a request."""

    def __init__(self) -> None:
        self._buffer = bytearray(65536)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._transport.write(_ANSWER)  # type: ignore[attr-defined]


def _serve(pipe: Pipe, kind: str, path: str) -> None:
    """The child: tells its port, then its processor time as often as asked."""
    if kind == "reading":
        sender.READ_SIZE_MAX = 2**31

    async def run() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def answer_pipe() -> None:
            if pipe.recv():
                pipe.send(time.process_time())
            else:
                done.set_result(None)

        file = DiskFiles().open(path)

        def handle(exchange: Exchange) -> None:
            if exchange.frame[0] == ord("F"):
                (size,) = unpack_from(">i", exchange.frame, 1)
                exchange.answer([pack(">i", size), FileRegion(file, _REGION_POSITION, size)])
            else:
                exchange.answer([_ANSWER])

        if kind == "bare":
            server = await loop.create_server(_Bare, "127.0.0.1", 0)
            pipe.send(server.sockets[0].getsockname()[1])
        else:
            listener = await Listener.start(
                Endpoint("BENCH", "127.0.0.1", 0),
                handle,
                ConnectionLimits(),
                options=SocketOptions(send_buffer_bytes=-1, receive_buffer_bytes=-1),
            )
            pipe.send(listener.port)
        loop.add_reader(pipe.fileno(), answer_pipe)
        await done

    uvloop.run(run())


class _Cost(NamedTuple):
    wall_s: float
    server_s: float


class _Server:
    """A server in a child process, and a client's socket to it."""

    def __init__(self, kind: str, path: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, kind, path), daemon=True)
        self._process.start()
        self._socket = socket.create_connection(("127.0.0.1", self._pipe.recv()))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._pipe.send(False)
        self._process.join()

    def measure(self, request: bytes, answer_size: int, count: int, depth: int = 1) -> _Cost:
        """`count` requests, `depth` of them under way at a time."""
        begin_server_s, begin_s = self._server_s(), time.perf_counter()
        for _ in range(count // depth):
            self._socket.sendall(request * depth)
            self._receive(answer_size * depth)
        return _Cost(time.perf_counter() - begin_s, self._server_s() - begin_server_s)

    def _server_s(self) -> float:
        self._pipe.send(True)
        return float(self._pipe.recv())

    def _receive(self, size: int) -> None:
        while size:
            received = self._socket.recv_into(self._buffer, min(size, len(self._buffer)))
            if not received:
                raise ConnectionError("the server has closed the connection")
            size -= received


def measure(path: str, round_count: int, scale: int) -> list[Row]:
    with _Server("bare", path) as bare, _Server("net", path) as ours:
        rows = _small_requests(ours, bare, round_count, scale)
        rows += _large_requests(ours, round_count, scale)
    # Connections of their own, as the kernel adapts each to what it has seen.
    with _Server("net", path) as sending, _Server("reading", path) as reading:
        return rows + _file_answers(sending, reading, round_count, scale)


def _small_requests(ours: _Server, bare: _Server, round_count: int, scale: int) -> list[Row]:
    request = pack(">i", 60) + b"x" * 60
    count = 20 * scale

    def rate(server: _Server, depth: int) -> float:
        return count / server.measure(request, len(_ANSWER), count, depth).server_s

    compared = alternate(lambda: rate(ours, 1), lambda: rate(bare, 1), round_count)
    rows = [Row.compared("small requests per CPU second", "/s", compared, "bare protocol")]
    for depth in (5, 20):
        rates = Comparison([rate(ours, depth) for _ in range(round_count)], [])
        what = f"small requests per CPU second, {depth} at a time"
        rows.append(Row.single(what, "/s", sorted(rates.ours)[len(rates.ours) // 2]))
    return rows


def _large_requests(ours: _Server, round_count: int, scale: int) -> list[Row]:
    rows = []
    for size in (16 * 1024, 128 * 1024, 1024 * 1024):
        request = pack(">i", size) + b"x" * size
        count = max(scale * 1024 * 1024 // size, 8)
        depth = max(1, min(8, 4 * 1024 * 1024 // size))
        costs = [ours.measure(request, len(_ANSWER), count, depth) for _ in range(round_count)]
        gigabytes = count // depth * depth * size / 1e9
        best = min(cost.server_s for cost in costs)
        rows.append(
            Row.single(
                f"requests of {size // 1024} KiB, {depth} at a time",
                "GB per CPU second",
                gigabytes / best,
                note=f"best of {round_count}",
            )
        )
    return rows


def _file_answers(ours: _Server, reading: _Server, round_count: int, scale: int) -> list[Row]:
    rows = []
    for size in (1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20, 1 << 24):
        request = pack(">i", 5) + b"F" + pack(">i", size)
        count = max(min(scale * 1024 * 1024 // size, scale * 4), 2)
        megabytes = count * size / 1e6

        def rate(
            server: _Server,
            request: bytes = request,
            size: int = size,
            count: int = count,
            megabytes: float = megabytes,
        ) -> float:
            return megabytes / server.measure(request, 4 + size, count).server_s

        compared = alternate(lambda: rate(ours), lambda: rate(reading), round_count)
        what = f"answers of {size // 1024} KiB from a file"
        rows.append(Row.compared(what, "MB per CPU second", compared, "read and write"))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.net_loopback", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=int, default=100, help="work of one round")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "log")
        with open(path, "wb") as file:
            file.write(os.urandom(1 << 20) * (_FILE_SIZE >> 20))
        print(
            as_markdown(Machine.describe(directory), measure(path, options.rounds, options.scale))
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
