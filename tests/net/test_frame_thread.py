"""Frames that a thread receives, over a pair of real sockets."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.reused_memory import KEPT_SIZE_MIN, Kept
from headwater.net.frame_thread import FrameThread
from tests.support.async_tests import run_async

FRAME_SIZE_MAX = 4 << 20
WAIT_S = 30.0


class Heard:
    """What the thread told, on the loop."""

    def __init__(self) -> None:
        self.frames: list[memoryview] = []
        self.refused: list[int] = []
        self.errors: list[OSError | None] = []
        self.ended = asyncio.Event()

    def lose(self, error: OSError | None) -> None:
        self.errors.append(error)
        self.ended.set()


def started(ours: socket.socket, heard: Heard) -> FrameThread:
    return FrameThread(
        asyncio.get_running_loop(),
        ours,
        name="test",
        frame_size_max=FRAME_SIZE_MAX,
        limits=Kept(1 << 20, 4 << 20),
        receive=heard.frames.append,
        refuse=heard.refused.append,
        lose=heard.lose,
    )


@contextmanager
def receiving(heard: Heard) -> Iterator[tuple[socket.socket, FrameThread]]:
    """The peer's end, and the thread at ours."""
    peer, ours = socket.socketpair()
    thread = started(ours, heard)
    with peer:
        yield peer, thread
        thread.close()


async def send(peer: socket.socket, data: bytes) -> None:
    await asyncio.to_thread(peer.sendall, data)


async def ended(heard: Heard) -> None:
    async with asyncio.timeout(WAIT_S):
        await heard.ended.wait()


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


sizes = st.sampled_from([1, 3, KEPT_SIZE_MIN - 1, KEPT_SIZE_MIN, 70_000, 2_000_000])


@given(st.lists(sizes, max_size=8), st.integers(1, 100_000))
@run_async
async def test_frames_come_whole_and_in_order_however_they_are_cut(
    frame_sizes: list[int], cut_size: int
) -> None:
    contents = [bytes([number + 1]) * size for number, size in enumerate(frame_sizes)]
    stream = b"".join(map(framed, contents))
    heard = Heard()
    with receiving(heard) as (peer, _):
        await send(peer, stream[:cut_size])
        await send(peer, stream[cut_size:])
        peer.shutdown(socket.SHUT_WR)
        await ended(heard)
    assert [bytes(frame) for frame in heard.frames] == contents
    assert (heard.errors, heard.refused) == ([None], [])


@pytest.mark.parametrize("size", [0, -1, FRAME_SIZE_MAX + 1])
@run_async
async def test_a_size_that_is_not_allowed_is_refused_and_ends_it(size: int) -> None:
    heard = Heard()
    with receiving(heard) as (peer, _):
        await send(peer, framed(b"before") + struct.pack(">i", size))
        await ended(heard)
        assert peer.recv(1) == b""
    assert [bytes(frame) for frame in heard.frames] == [b"before"]
    assert heard.refused == [size]


@pytest.mark.parametrize("received", [1, 4, 100, KEPT_SIZE_MIN + 5])
@run_async
async def test_half_of_a_frame_is_none(received: int) -> None:
    heard = Heard()
    with receiving(heard) as (peer, _):
        await send(peer, framed(bytes(100_000))[:received])
        peer.close()
        await ended(heard)
    assert heard.frames == []


@run_async
async def test_who_closes_it_ends_a_thread_that_waits() -> None:
    heard = Heard()
    with receiving(heard) as (peer, thread):
        await send(peer, framed(b"before") + b"\0\0")
        thread.close()
        thread.close()
        await ended(heard)
        assert peer.recv(1) == b""
    assert [bytes(frame) for frame in heard.frames] == [b"before"]


@run_async
async def test_a_broken_connection_is_told_with_its_error() -> None:
    heard = Heard()
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    started(ours, heard)
    # With no time to linger the connection is reset.
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    await ended(heard)
    assert [type(error) for error in heard.errors] == [ConnectionResetError]
