"""Sends answers: bytes through the transport, regions of files by sendfile past it.

Everything leaves in the order in which it was given to `send`. Bytes are written to the transport,
which writes them to the socket at once and keeps what the socket does not take. A large region is
sent by the kernel from the page cache straight to the socket, which is right only while the
transport keeps nothing back; the transport's limits are set so that it reports exactly that. When
the socket is full, the loop watches a duplicate of its descriptor, because loops refuse to watch a
descriptor that a transport owns. A small region is read and joined with the bytes around it, which
is cheaper than a system call of its own.

A region that is not in the page cache is read in by a thread first. In that time, and while the
socket is full, the sender is *busy*: what comes waits in a queue. Its owner hears of it, and stops
reading requests, so the queue holds the answers to requests that were under way at most.

Where there is no socket, or the bytes must be encrypted on their way, or a file has no descriptor,
regions are read piece by piece and written as bytes.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from headwater.net.page_cache import RunInThread
from headwater.net.region import BUFFER_TYPES, Buffer, Part, Region
from headwater.net.region_transfer import RegionCutShortError, RegionTransfer

READ_SIZE_MAX = 16 * 1024
"""Regions up to here are read and written; above, sendfile is faster."""
JOINED_SIZE_MAX = 64 * 1024
"""Bytes are joined to one write up to here; more are handed over as they are."""
PIECE_SIZE = 256 * 1024
"""How much of a region is read at once where sendfile cannot be used."""
TURN_SIZE = 1024 * 1024
"""How much of a region is sent before other connections get their turn."""
MORE_FOLLOWS: int = getattr(socket, "MSG_MORE", 0)

# Why parts wait in the queue, or are thrown away. With none of these the queue is empty.
BUSY = 1
CORKED = 2
CLOSED = 4


class Sender:
    """The outgoing half of one connection."""

    __slots__ = (
        "_fail",
        "_has_socket",
        "_holds",
        "_is_reading_in",
        "_loop",
        "_queue",
        "_run_in_thread",
        "_set_busy",
        "_socket",
        "_transfer",
        "_transport",
        "bytes_out",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        *,
        run_in_thread: RunInThread | None,
        set_busy: Callable[[bool], None],
        fail: Callable[[str], None],
    ) -> None:
        """`set_busy` hears when answers begin and cease to queue, `fail` that no more can go out.

        `fail` gets a reason for the log, empty if the peer is simply gone.
        """
        self.bytes_out = 0
        self._loop = loop
        self._transport = transport
        self._run_in_thread = run_in_thread
        self._set_busy = set_busy
        self._fail = fail
        self._queue: deque[Part] = deque()
        self._transfer: RegionTransfer | None = None
        self._is_reading_in = False
        self._holds = 0
        self._socket: socket.socket | None = None
        self._has_socket: bool | None = None
        transport.set_write_buffer_limits(high=0)

    @property
    def is_empty(self) -> bool:
        """Whether all that was given to `send` has reached the socket."""
        return not (self._queue or self._holds & BUSY or self._transfer)

    def send(self, parts: Sequence[Part]) -> None:
        """Send these after all that came before."""
        if self._holds:
            if not self._holds & CLOSED:
                self._queue.extend(parts)
            return
        if len(parts) == 1:
            part = parts[0]
            if type(part) is bytes:
                self.bytes_out += len(part)
                self._transport.write(part)
                return
        self._queue.extend(parts)
        self._flush()

    def cork(self) -> None:
        """Gather what comes until `uncork`, for one write of all of it."""
        self._holds |= CORKED

    def uncork(self) -> None:
        self._holds &= ~CORKED
        if self._queue:
            self._flush()

    def pause_writing(self) -> None:
        """The transport has kept bytes back."""
        self._become_busy()

    def resume_writing(self) -> None:
        """The transport has written them all."""
        self._go_on()

    def close(self) -> None:
        """The connection is gone, and with it what was not sent."""
        self._holds |= CLOSED
        self._queue.clear()
        plain_socket, self._socket = self._socket, None
        if plain_socket is not None:
            self._loop.remove_writer(plain_socket)
            plain_socket.close()
        if not self._is_reading_in:
            self._end_transfer()

    def _become_busy(self) -> None:
        if not self._holds & BUSY:
            self._holds |= BUSY
            self._set_busy(True)

    def _go_on(self) -> None:
        if self._holds & CLOSED:
            return
        self._holds &= ~BUSY
        self._flush()
        if not self._holds & (BUSY | CLOSED):
            self._set_busy(False)

    def _flush(self) -> None:
        """Send from the queue until it is empty or the sender is busy."""
        try:
            while not self._holds & (BUSY | CLOSED):
                if self._transfer is not None:
                    self._continue_transfer(self._transfer)
                elif not self._queue:
                    return
                else:
                    self._send_next()
        except RegionCutShortError:
            self._fail("a file became shorter than what was to be sent of it")
        except ConnectionError:
            self._fail("")
        except OSError as error:
            self._fail(f"a file could not be sent: {error}")

    def _send_next(self) -> None:
        if self._has_socket is None and any(type(part) not in BUFFER_TYPES for part in self._queue):
            self._socket = _duplicate_socket(self._transport)
            self._has_socket = self._socket is not None
        if not self._send_buffers():
            self._transfer = RegionTransfer(cast("Region", self._queue.popleft()))

    def _send_buffers(self) -> bool:
        """Send bytes and small regions up to the next region that is large or not in memory.

        False if there are none in front of that.
        """
        queue = self._queue
        buffers: list[Buffer] = []
        size = 0
        while queue and size < JOINED_SIZE_MAX:
            part = queue[0]
            if type(part) in BUFFER_TYPES:
                data = cast("Buffer", part)
            else:
                region = cast("Region", part)
                small = _read_small(region) if region.size <= READ_SIZE_MAX else None
                if small is None:
                    break
                data = small
            queue.popleft()
            buffers.append(data)
            size += len(data)
        if not buffers:
            return False
        if size > JOINED_SIZE_MAX:
            self.bytes_out += size
            self._transport.writelines(buffers)
            return True
        data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        if queue and self._socket is not None:
            self._send_ahead(self._socket, data)
        else:
            self.bytes_out += size
            self._transport.write(data)
        return True

    def _send_ahead(self, plain_socket: socket.socket, data: Buffer) -> None:
        """Send bytes that a region follows: the kernel keeps them back to put both in a packet."""
        try:
            sent = plain_socket.send(data, MORE_FOLLOWS)
        except BlockingIOError:
            sent = 0
        self.bytes_out += sent
        if sent < len(data):
            self._queue.appendleft(memoryview(data)[sent:])
            self._wait_for_socket(plain_socket)

    def _continue_transfer(self, transfer: RegionTransfer) -> None:
        """Send of a region what the socket takes and a turn allows."""
        turn_end = transfer.left - TURN_SIZE
        while transfer.left:
            if transfer.left <= turn_end:
                self._become_busy()
                self._loop.call_soon(self._go_on)
                return
            window = transfer.window()
            if window == 0:
                self._start_reading_in(transfer)
                return
            if self._socket is None or not transfer.has_descriptor:
                data = transfer.read(min(window, PIECE_SIZE))
                self.bytes_out += len(data)
                self._transport.write(data)
                if self._holds & (BUSY | CLOSED):
                    return
                continue
            try:
                self.bytes_out += transfer.send_to(self._socket.fileno(), window)
            except BlockingIOError:
                self._wait_for_socket(self._socket)
                return
        self._end_transfer()

    def _end_transfer(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.close()

    def _wait_for_socket(self, plain_socket: socket.socket) -> None:
        self._become_busy()
        self._loop.add_writer(plain_socket, self._socket_has_room, plain_socket)

    def _socket_has_room(self, plain_socket: socket.socket) -> None:
        self._loop.remove_writer(plain_socket)
        self._go_on()

    def _start_reading_in(self, transfer: RegionTransfer) -> None:
        if self._run_in_thread is None:
            transfer.read_in()
            return
        self._become_busy()
        self._is_reading_in = True
        reading = asyncio.ensure_future(self._run_in_thread(transfer.read_in))
        reading.add_done_callback(self._end_reading_in)

    def _end_reading_in(self, reading: asyncio.Future[None]) -> None:
        self._is_reading_in = False
        error = None if reading.cancelled() else reading.exception()
        if self._holds & CLOSED:
            self._end_transfer()
        elif error is not None or reading.cancelled():
            self._fail(f"a file could not be read: {error}")
        else:
            self._go_on()


def _read_small(region: Region) -> bytes | None:
    """The bytes of a region, unless they have to be waited for."""
    transfer = RegionTransfer(region)
    try:
        return transfer.read(region.size) if transfer.window() else None
    finally:
        transfer.close()


def _duplicate_socket(transport: asyncio.Transport) -> socket.socket | None:
    """The transport's socket, for use past it; None if there is none or it needs encryption."""
    owned = transport.get_extra_info("socket")
    if owned is None or transport.get_extra_info("sslcontext") is not None:
        return None
    return socket.socket(owned.family, owned.type, owned.proto, fileno=os.dup(owned.fileno()))
