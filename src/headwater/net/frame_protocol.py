"""Cuts a stream of bytes into frames, with one copy of small ones and none of large ones.

A frame is four bytes of length, big-endian, and as many bytes. Both ends of a connection receive
that way: the broker's requests and a peer's responses.

Reading starts in a scratch buffer that all connections of an event loop share. That is safe since a
transport asks for a buffer, receives into it and reports in one go, with nothing in between; what
must survive the report is copied out. Frames that are complete in the scratch are copied out one by
one. Of a frame that is not, the part that has come is copied to a buffer of its own, into which the
rest is received directly. After a large frame, a short piece of the scratch is offered, so that
of the next one almost nothing is copied; after small ones all of it, to receive many at once.

A frame's length is only a claim, and a peer has to send something before it costs memory. The
first `STAGE_SIZE` bytes of a frame go to a small buffer, then the frame gets its own. It may fill
`WHOLE_SIZE` bytes of that, which is all of an ordinary frame, and of a larger one as much again as
has come: the buffer is a memory map, which takes no memory until something is received into it.

Reading can be paused for several reasons at once, and goes on when none is left. Frames that came
with the last read before a pause wait in a backlog, which is not longer than the scratch.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import cast
from weakref import WeakKeyDictionary

from headwater.base.reused_memory import KEPT_SIZE_MIN, Kept
from headwater.net.frame_memory import KEPT_OF_REQUESTS, SMALL_SCRATCH_SIZE, FrameMemory

LENGTH = Struct(">i")
LENGTH_SIZE = LENGTH.size
_unpack_length = LENGTH.unpack_from
STAGE_SIZE = SMALL_SCRATCH_SIZE - LENGTH_SIZE
"""How much of a frame has to come before it gets a buffer of its size."""
WHOLE_SIZE = KEPT_OF_REQUESTS.size_max
"""A frame up to here has all of its room then."""
DIRECT_SIZE_MIN = 256 * 1024
"""A frame from here on lets the next one be expected to be as large."""

_memories: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Kept, FrameMemory]] = (
    WeakKeyDictionary()
)


def memory_of(loop: asyncio.AbstractEventLoop, limits: Kept) -> FrameMemory:
    """The memory that all connections of a loop that keep as much receive into."""
    memories = _memories.setdefault(loop, {})
    memory = memories.get(limits)
    if memory is None:
        memory = memories[limits] = FrameMemory(limits)
    return memory


class FrameProtocol(asyncio.BufferedProtocol):
    """Receives frames: subclasses say how long one may be, whether it is let in, where it goes."""

    transport: asyncio.Transport

    __slots__ = (
        "_backlog",
        "_backlog_position",
        "_filled",
        "_frame",
        "_frame_size",
        "_full_window",
        "_head",
        "_is_continuing",
        "_loop",
        "_memory",
        "_pauses",
        "_room",
        "_window",
        "bytes_in",
        "frame_size_max",
        "transport",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        frame_size_max: int,
        limits: Kept = KEPT_OF_REQUESTS,
    ) -> None:
        self.frame_size_max = frame_size_max
        self.bytes_in = 0
        self._loop = loop
        self._memory = memory_of(loop, limits)
        # A frame under way has a buffer, which is shorter than the frame in its first stage.
        self._frame: memoryview | None = None
        self._frame_size = 0
        self._filled = 0
        # How far it may be filled for now.
        self._room = 0
        # Otherwise there may be one to three bytes of the next frame's length.
        self._head = b""
        self._full_window = self._window = self._memory.scratch
        self._backlog: bytearray | None = None
        self._backlog_position = 0
        self._pauses = 0
        self._is_continuing = False

    # What subclasses do.

    def admit_frame(self, size: int, *, is_whole: bool) -> bool:
        """Whether a frame that takes so much memory is let in; if not, a pause must be in force.

        If it is not whole, only a piece of it has come, and this is the memory for that.
        """
        return True

    def admit_more(self, size: int) -> bool:
        """Whether the frame under way may take so much more; if not, a pause must be in force.

        When it may, `ask_for_room` asks again.
        """
        return True

    def complete_frame(self, frame: memoryview) -> None:
        """The last piece of a frame has come."""
        self.receive_frame(frame)

    def receive_frame(self, frame: memoryview) -> None:
        """Take a complete frame, without its length."""

    def refuse_frame(self, size: int) -> None:
        """The peer claims a frame of a size that is not allowed; nothing more is received."""

    def start_series(self) -> None:
        """Several frames came together; the first is about to be received."""

    def end_series(self) -> None:
        """All of them have been, or as many as belong to one turn."""

    def may_go_on(self) -> bool:
        """Whether the next frame of the series is received now; if not, a pause is in force."""
        return True

    # What transports call.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        frame = self._frame
        if frame is not None:
            return frame[self._filled : self._room]
        head = self._head
        if head:
            window = self._window
            window[: len(head)] = head
            return window[len(head) :]
        return self._window

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes_in += nbytes
        frame = self._frame
        if frame is None:
            if self._head:
                nbytes += len(self._head)
                self._head = b""
            self._window = self._full_window
            self._scan(self._memory.scratch_bytes, 0, nbytes)
            return
        self._filled = filled = self._filled + nbytes
        if filled != self._room:
            return
        if filled == self._frame_size:
            self._frame = None
            self.complete_frame(frame)
        else:
            self.ask_for_room()

    # Pausing.

    def pause(self, reason: int) -> None:
        """Receive nothing until `resume` with the same reason."""
        if not self._pauses:
            self.transport.pause_reading()
        self._pauses |= reason

    def resume(self, reason: int) -> None:
        """Go on, from the loop and not from inside of this call, if no other reason is left."""
        if self._pauses & reason:
            self._pauses &= ~reason
            if not self._pauses and not self._is_continuing:
                self._is_continuing = True
                self._loop.call_soon(self.continue_reading)

    def continue_reading(self) -> None:
        """Take what is in the backlog, then read on; does nothing while there is a pause."""
        self._is_continuing = False
        if self._pauses or self.transport.is_closing():
            return
        backlog = self._backlog
        if backlog is not None:
            self._backlog = None
            self._scan(backlog, self._backlog_position, len(backlog))
        if not self._pauses and not self.transport.is_closing():
            self.transport.resume_reading()

    # Cutting.

    def _scan(self, data: bytearray, position: int, end: int) -> None:
        """Take the frames out of what was received; `position` is where a frame begins."""
        is_series = False
        while end - position >= LENGTH_SIZE:
            (size,) = _unpack_length(data, position)
            if not 0 < size <= self.frame_size_max:
                self.refuse_frame(size)
                break
            frame_end = position + LENGTH_SIZE + size
            is_whole = frame_end <= end
            room = size if is_whole else _room_of(size, end - position - LENGTH_SIZE)
            if (
                self._pauses
                or (is_series and not self.may_go_on())
                or not self.admit_frame(room, is_whole=is_whole)
            ):
                self._keep(data, position, end)
                break
            position += LENGTH_SIZE
            if not is_whole:
                self._start_frame(size, room, data, position, end)
                break
            if size < KEPT_SIZE_MIN:
                frame = memoryview(data[position:frame_end])
            else:
                frame = self._memory.take(size)
                frame[:] = memoryview(data)[position:frame_end]
            position = frame_end
            if position != end and not is_series:
                is_series = True
                self.start_series()
            self.receive_frame(frame)
        else:
            if position != end:
                self._head = bytes(data[position:end])
        if is_series:
            self.end_series()

    def _keep(self, data: bytearray, position: int, end: int) -> None:
        """Put aside what has come and must wait for the end of a pause."""
        if data is self._memory.scratch_bytes:
            data = data[position:end]
            position = 0
        self._backlog = data
        self._backlog_position = position

    def _start_frame(self, size: int, room: int, data: bytearray, position: int, end: int) -> None:
        filled = end - position
        self._frame = frame = self._memory.take(size if room > STAGE_SIZE else room)
        self._frame_size = size
        self._filled = filled
        self._room = room
        frame[:filled] = memoryview(data)[position:end]
        if size >= DIRECT_SIZE_MIN:
            self._window = self._memory.small_scratch

    def ask_for_room(self) -> None:
        """Let the frame under way, if there is one, be filled further."""
        frame = self._frame
        if frame is None:
            return
        room = _room_of(self._frame_size, self._filled)
        if self.admit_more(room - self._room):
            if len(frame) < room:
                self._frame = self._memory.take(self._frame_size)
                self._frame[: len(frame)] = frame
            self._room = room


def _room_of(size: int, filled: int) -> int:
    """How much memory a frame of that size may have when so much of it has come."""
    if filled < STAGE_SIZE:
        return min(size, STAGE_SIZE)
    return min(size, max(WHOLE_SIZE, 2 * filled))
