"""A transport in memory that a test plays the peer of, and loops to run network tests on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from struct import pack
from typing import Any, TypeVar

import uvloop

Result = TypeVar("Result")

Runner = Callable[[Coroutine[Any, Any, Result]], Result]

RUNNERS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
}


def frame(body: bytes) -> bytes:
    """A body with its length in front."""
    return pack(">i", len(body)) + body


class FakeTransport(asyncio.Transport):
    """Takes what is written, as long as there is room, and delivers what the test wants."""

    def __init__(self, *, room: int = 2**60, peer: tuple[str, int] = ("192.0.2.1", 4711)) -> None:
        super().__init__({"peername": peer, "sockname": ("192.0.2.2", 9092)})
        #: What has reached the peer, and how many more bytes it would take.
        self.delivered = bytearray()
        self.room = room
        self.write_count = 0
        self.is_reading_paused = False
        self.is_closed = False
        self.was_aborted = False
        self._kept = bytearray()
        self._is_writing_paused = False
        self._is_closing = False
        self._protocol: asyncio.BufferedProtocol | None = None

    def connect(self, protocol: asyncio.BufferedProtocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    # What the peer does.

    def receive(self, data: bytes) -> int:
        """Let the protocol read as much of it as it wants to; how much that was."""
        assert self._protocol is not None
        taken = 0
        while taken < len(data) and not self.is_reading_paused and not self._is_closing:
            buffer = memoryview(self._protocol.get_buffer(-1))
            size = min(len(buffer), len(data) - taken)
            assert size > 0
            buffer[:size] = data[taken : taken + size]
            taken += size
            self._protocol.buffer_updated(size)
        return taken

    def make_room(self, size: int) -> None:
        """Let the peer read."""
        self.room += size
        self._deliver()

    def lose(self, error: Exception | None = None) -> None:
        assert self._protocol is not None
        self._is_closing = True
        if not self.is_closed:
            self.is_closed = True
            self._protocol.connection_lost(error)

    # What the protocol does.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._is_closing
        self.write_count += 1
        self._kept += data
        self._deliver()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def _deliver(self) -> None:
        size = min(self.room, len(self._kept))
        self.delivered += self._kept[:size]
        del self._kept[:size]
        self.room -= size
        protocol = self._protocol
        assert protocol is not None
        if self._kept and not self._is_writing_paused:
            self._is_writing_paused = True
            protocol.pause_writing()
        elif not self._kept and self._is_writing_paused:
            self._is_writing_paused = False
            protocol.resume_writing()
        if self._is_closing and not self._kept:
            self._soon_lost()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0, "the transport must say at once that it keeps bytes back"

    def get_write_buffer_size(self) -> int:
        return len(self._kept)

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if not self._kept:
                self._soon_lost()

    def abort(self) -> None:
        self.was_aborted = True
        self._is_closing = True
        self._soon_lost()

    def _soon_lost(self) -> None:
        asyncio.get_running_loop().call_soon(self.lose)


async def turns(count: int = 5) -> None:
    """Let the loop do what it was asked to do soon."""
    for _ in range(count):
        await asyncio.sleep(0)
