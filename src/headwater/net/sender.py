"""Sends answers: bytes through the transport, regions of files by sendfile past it.

Everything leaves in the order in which it was given to `send`. Bytes are written to the transport,
which writes them to the socket at once and keeps what the socket does not take. A large region is
sent by the kernel from the page cache straight to the socket, which is right only while the
transport keeps nothing back; its limits are set so that it reports exactly that. A small region is
read and joined with the bytes around it, which is cheaper than a system call of its own.

A region that is not in the page cache is read in by a thread first. In that time, and while the
socket is full, the sender is *busy*: what comes waits in a queue. Its owner hears of it, and stops
reading requests, so the queue holds the answers to requests that were under way at most.

Where there is no socket, or the bytes must be encrypted on their way, or a file has no descriptor,
regions are read piece by piece and written as bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from headwater.base.threads import RunInThread
from headwater.net.loop_round import round_of
from headwater.net.plain_socket import PlainSocket
from headwater.net.region import BUFFER_TYPES, Buffer, Part, Region
from headwater.net.region_transfer import RegionCutShortError, RegionTransfer

READ_SIZE_MAX = 16 * 1024
"""Regions up to here are read and written; above, sendfile is faster."""
ALIGNED_SIZE_MIN = 60 * 1024
"""From here on it pays to let sendfile start at a page of the file, and to read what is before."""
JOINED_SIZE_MAX = 64 * 1024
"""Bytes are joined to one write up to here; more are handed over as they are."""
WRITTEN_SIZE_MAX = 1024 * 1024
"""About so much is handed over at once."""
PIECE_SIZE = 256 * 1024
"""How much of a region is read at once where sendfile cannot be used."""
TURN_SIZE = 1024 * 1024
"""How much of a region is sent before other connections get their turn."""

# Why parts wait in the queue, or are thrown away. With none of these the queue is empty.
BUSY = 1
CORKED = 2
CLOSED = 4


class Sender:
    """The outgoing half of one connection."""

    __slots__ = (
        "_ahead",
        "_fail",
        "_holds",
        "_is_reading_in",
        "_loop",
        "_queue",
        "_round",
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

        The former may be told twice that it is so. `fail` gets a reason for the log, empty if the
        peer is simply gone.
        """
        self.bytes_out = 0
        self._loop = loop
        self._transport = transport
        self._run_in_thread = run_in_thread
        self._set_busy = set_busy
        self._fail = fail
        self._round = round_of(loop)
        self._queue: deque[Part] = deque()
        self._holds = 0
        # What goes before the queue: bytes in front of a region, and the region.
        self._ahead: Buffer = b""
        self._transfer: RegionTransfer | None = None
        self._is_reading_in = False
        # Not looked for yet; None if there is none.
        self._socket: PlainSocket | type[PlainSocket] | None = PlainSocket
        transport.set_write_buffer_limits(high=0)

    @property
    def is_empty(self) -> bool:
        """Whether all that was given to `send` has reached the socket."""
        return not (self._queue or self._holds & BUSY or self._transfer)

    @property
    def waits_for_peer(self) -> bool:
        """Whether answers wait because the peer does not read them."""
        return bool(self._holds & BUSY) and not self._is_reading_in

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

    def gather(self) -> None:
        """Gather what comes until the loop's next round, for one write of all of it."""
        if not self._holds & CORKED:
            self._holds |= CORKED
            self._loop.call_soon(self.uncork)

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
        if isinstance(self._socket, PlainSocket):
            self._socket.close()
        self._socket = None
        if not self._is_reading_in:
            self._end_transfer()

    # Being busy.

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
                if self._ahead:
                    self._send_ahead(self._ahead)
                elif self._transfer is not None:
                    self._continue_transfer(self._transfer)
                elif self._queue:
                    self._send_next()
                else:
                    return
        except RegionCutShortError:
            self._fail("a file became shorter than what was to be sent of it")
        except ConnectionError:
            self._fail("")
        except OSError as error:
            self._fail(f"a file could not be sent: {error}")

    # Bytes.

    def _send_next(self) -> None:
        """Send what comes before the next region that is large or not in memory, or start that."""
        queue = self._queue
        buffers, size = self._take_buffers()
        if not buffers:
            self._transfer = RegionTransfer(cast("Region", queue.popleft()))
        elif size > JOINED_SIZE_MAX:
            self.bytes_out += size
            self._transport.writelines(buffers)
        else:
            data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
            if queue and type(queue[0]) not in BUFFER_TYPES and self._find_socket() is not None:
                self._send_ahead(data)
            else:
                self.bytes_out += size
                self._transport.write(data)

    def _take_buffers(self) -> tuple[list[Buffer], int]:
        """Bytes and small regions from the queue, and their size."""
        queue = self._queue
        buffers: list[Buffer] = []
        size = 0
        while queue and size < WRITTEN_SIZE_MAX:
            part = queue[0]
            if type(part) in BUFFER_TYPES:
                data = cast("Buffer", part)
            else:
                small = _read_small(cast("Region", part))
                if small is None:
                    break
                data = small
            queue.popleft()
            buffers.append(data)
            size += len(data)
        return buffers, size

    def _send_ahead(self, data: Buffer) -> None:
        """Send bytes that a region follows, past the transport."""
        plain_socket = self._find_socket()
        if plain_socket is None:
            return
        sent = plain_socket.send_ahead(data)
        self.bytes_out += sent
        if sent == len(data):
            self._ahead = b""
        else:
            self._ahead = memoryview(data)[sent:]
            self._wait_for(plain_socket)

    def _find_socket(self) -> PlainSocket | None:
        if self._socket is PlainSocket:
            self._socket = PlainSocket.of(self._loop, self._transport)
        return cast("PlainSocket | None", self._socket)

    def _wait_for(self, plain_socket: PlainSocket) -> None:
        self._become_busy()
        plain_socket.call_when_ready(self._go_on)

    # Regions.

    def _continue_transfer(self, transfer: RegionTransfer) -> None:
        """Send of a region what the socket takes and a turn allows."""
        plain_socket = self._find_socket() if transfer.has_descriptor else None
        turn_end = transfer.left - TURN_SIZE
        while transfer.left and not self._holds & (BUSY | CLOSED):
            window = transfer.window()
            if window == 0:
                self._start_reading_in(transfer)
            elif transfer.left <= turn_end or self._round.has_sent_enough:
                self._become_busy()
                self._loop.call_soon(self._go_on)
            elif plain_socket is None:
                data = transfer.read(min(window, PIECE_SIZE))
                self.bytes_out += len(data)
                self._round.sent(self._loop, len(data))
                self._transport.write(data)
            elif window >= ALIGNED_SIZE_MIN and (head_size := transfer.size_to_page()):
                self._send_ahead(transfer.read(head_size))
            else:
                sent = transfer.send_to(plain_socket.descriptor, window)
                self.bytes_out += sent
                self._round.sent(self._loop, sent)
                if sent < window:
                    self._wait_for(plain_socket)
        if not transfer.left:
            self._end_transfer()

    def _end_transfer(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.close()

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
    """The bytes of a region if it is small and in memory."""
    if region.size > READ_SIZE_MAX:
        return None
    if region.size == 0:
        return b""
    transfer = RegionTransfer(region)
    try:
        return transfer.read(region.size) if transfer.window() else None
    finally:
        transfer.close()
