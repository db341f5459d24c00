"""Receives the frames of one connection on a thread of its own, each with as few calls as possible.

A loop receives what has come, again and again: of a megabyte on its way some hundred kilobytes at a
time. For each of these pieces its thread needs Python's lock, and waits for it while another thread
computes. So in a program that receives on one thread and decodes on another, the two spend much of
their time on taking turns. The thread here waits in the kernel, without the lock, for the length of
a frame and then for all of it, so that it needs the lock twice a frame.

For connections on which every frame answers a request, so that no more comes than was asked for:
what has come waits for the loop without a limit. The socket blocks from now on, but for those who
write to it hardly longer than before: see `_WRITE_TIME`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Final

from headwater.base.reused_memory import Kept, ReusedMemory
from headwater.net.frame_protocol import LENGTH, LENGTH_SIZE

_WHOLE: Final = socket.MSG_WAITALL
#: A millisecond, as the kernel has it. After that a full socket is told as it is without blocking,
#: and the loop waits until there is room.
_WRITE_TIME: Final = struct.pack("ll", 0, 1_000)


class FrameThread:
    """Starts at once; it owns the socket, and ends with the connection or after `close`.

    On the loop `receive` gets each frame, or `refuse` the size of one that is not allowed. `lose`
    hears the end, with the error if there was one.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: socket.socket,
        *,
        name: str,
        frame_size_max: int,
        limits: Kept,
        receive: Callable[[memoryview], None],
        refuse: Callable[[int], None],
        lose: Callable[[OSError | None], None],
    ) -> None:
        self._loop = loop
        self._socket = connected
        self._frame_size_max = frame_size_max
        self._memory = ReusedMemory(limits)
        self._receive = receive
        self._refuse = refuse
        self._lose = lose
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _WRITE_TIME)
        connected.setblocking(True)
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        """End the connection, whoever else has its socket, and with it the thread."""
        # It may have ended by itself.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    # On the thread.

    def _run(self) -> None:
        error: OSError | None = None
        try:
            with self._socket:
                while self._receive_next():
                    pass
        except OSError as failure:
            error = failure
        self._tell(lambda: self._lose(error))

    def _receive_next(self) -> bool:
        """Wait for a frame and hand it over; False if there will be none."""
        length = memoryview(bytearray(LENGTH_SIZE))
        if not self._fill(length):
            return False
        (size,) = LENGTH.unpack(length)
        if not 0 < size <= self._frame_size_max:
            self._tell(lambda: self._refuse(size))
            return False
        # The length is only a claim, but what is too large to be kept takes memory when it comes.
        frame = self._memory.take(size)
        if not self._fill(frame):
            return False
        self._tell(lambda: self._receive(frame))
        return True

    def _fill(self, view: memoryview) -> bool:
        """Receive until it is full; False if the connection ends before."""
        filled = 0
        while filled < len(view):
            # It is one call, unless a signal interrupts it.
            count = self._socket.recv_into(view[filled:], 0, _WHOLE)
            if count == 0:
                return False
            filled += count
        return True

    def _tell(self, callback: Callable[[], None]) -> None:
        # After the end of the loop there is nobody to be told.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)
