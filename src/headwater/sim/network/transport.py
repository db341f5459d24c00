"""One end of a simulated connection: an asyncio transport whose other end is in the same memory.

Bytes written go into packets as long as the window has room, and wait in this end's buffer beyond
that, where the protocol is asked to pause. At the other end they wait until its protocol reads, so
that one that does not read holds up the one that writes, as with TCP.

Ends of a connection: `close` sends what is buffered, then an end of stream; `abort`, data for an
end that is closed, and a close that leaves received bytes unread, send a reset. A process that dies
says nothing: its host answers for it later. Protocols are called in the process that they belong
to, not at all when it is dead, and later when it is paused: until then its host holds the bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.base.checks import InvariantError, check
from headwater.sim.disk.faults import SimulatedCrash

if TYPE_CHECKING:
    from headwater.sim.network.network import SimulatedNetwork
    from headwater.sim.process import SimulatedProcess

Address = tuple[str, int]

HIGH_WATER_BYTES: Final = 65_536
#: What one call of `data_received` gets at most.
READ_BYTES_MAX: Final = 262_144


class Packet(NamedTuple):
    """What goes over the network at once: some bytes, the end of the stream, or a reset."""

    kind: str
    data: bytes = b""


DATA: Final = "data"
END: Final = Packet("end")
RESET: Final = Packet("reset")


class SimulatedTransport(asyncio.Transport):
    peer: SimulatedTransport

    def __init__(
        self,
        network: SimulatedNetwork,
        process: SimulatedProcess,
        name: str,
        local: Address,
        remote: Address,
    ) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self.name = name
        self.process = process
        #: Packets that this end sent and that have not arrived.
        self.under_way: deque[Packet] = deque()
        #: The network has lost the connection, which the ends may not have noticed yet.
        self.is_broken = False
        #: Nothing comes or goes any more, and the protocol knows or will know at once.
        self.is_lost = False
        self._network = network
        self._protocol: asyncio.BaseProtocol = asyncio.Protocol()
        self._unsent = bytearray()
        self._in_window = 0
        self._low_water, self._high_water = HIGH_WATER_BYTES // 4, HIGH_WATER_BYTES
        self._writing_paused = False
        self._received = bytearray()
        self._end_received = False
        self._is_started = False
        self._reading_paused = False
        self._read_is_due = False
        self._end_written = False
        self._end_sent = False
        self._closing = False
        process.add_kill_callback(self._vanish)

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """The connection is there: tell its protocol."""
        self._protocol = protocol
        self._is_started = True
        self._soon(lambda: protocol.connection_made(self))
        self._schedule_read()

    # -- what protocols ask ----------------------------------------------------------------------

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing or self.is_lost

    def is_reading(self) -> bool:
        return self._is_started and not self.is_closing() and not self._reading_paused

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._schedule_read()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        check(high >= low >= 0, "the high water %d is below the low water %d", high, low)
        self._low_water, self._high_water = low, high
        self._ask_for_pause()

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_water, self._high_water

    # -- writing ---------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._end_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._closing or self.is_lost or not self.process.is_alive:
            return
        self._unsent += data
        self._send_unsent()
        self._ask_for_pause()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._end_written and not self._closing:
            self._end_written = True
            self._send_unsent()

    def _send_unsent(self) -> None:
        window = self._network.conditions.window_bytes
        while self._unsent and self._in_window < window and not self.is_lost:
            size = self._network.packet_size(min(len(self._unsent), window - self._in_window))
            data = bytes(self._unsent[:size])
            del self._unsent[:size]
            self._in_window += size
            self._network.send(self, Packet(DATA, data))
        if self._unsent or self.is_lost:
            return
        if self._closing:
            self._end(RESET if self._received else END, None)
        elif self._end_written:
            self._send_end()

    def _send_end(self) -> None:
        if not self._end_sent:
            self._end_sent = True
            self._network.send(self, END)

    def _ask_for_pause(self) -> None:
        if len(self._unsent) > self._high_water and not self._writing_paused:
            self._writing_paused = True
            self._call(self._protocol.pause_writing)

    def _window_opened(self, size: int) -> None:
        """The other end has read some of it."""
        self._in_window -= size
        if self.is_lost or not (self._unsent or self._writing_paused):
            return
        self._send_unsent()
        if self._writing_paused and len(self._unsent) <= self._low_water and not self.is_lost:
            self._writing_paused = False
            self._call(self._protocol.resume_writing)

    # -- reading ---------------------------------------------------------------------------------

    def receive(self, packet: Packet) -> None:
        """A packet has come over the network."""
        if not self.process.is_alive:
            return
        if packet.kind == RESET.kind:
            self.lose(ConnectionResetError("reset by the peer"))
        elif self.is_lost or (self._closing and packet.data):
            if packet.data:
                self._network.send(self, RESET)
        else:
            self._received += packet.data
            self._end_received |= packet is END
            self._schedule_read()

    def _schedule_read(self) -> None:
        if self.is_reading() and (self._received or self._end_received) and not self._read_is_due:
            self._read_is_due = True
            self._soon(self._read)

    def _read(self) -> None:
        self._read_is_due = False
        if not self.is_reading():
            return
        if self._received:
            size = self._feed()
            self._network.next(self.peer._window_opened, size)
            self._schedule_read()
        elif self._end_received:
            self._end_received = False
            if not _stream(self._protocol).eof_received():
                self.close()

    def _feed(self) -> int:
        protocol = _stream(self._protocol)
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(-1))
            check(len(buffer), "get_buffer() returned an empty buffer")
            size = min(len(buffer), len(self._received))
            buffer[:size] = self._received[:size]
            buffer.release()
            del self._received[:size]
            protocol.buffer_updated(size)
            return size
        data = bytes(self._received[:READ_BYTES_MAX])
        del self._received[: len(data)]
        protocol.data_received(data)
        return len(data)

    # -- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        if not self.is_closing():
            self._closing = True
            self._send_unsent()

    def abort(self) -> None:
        if not self.is_lost:
            self._end(RESET, None)

    def lose(self, error: Exception | None) -> None:
        """The connection is gone for this end."""
        if not self.is_lost:
            self._end(None, error)

    def _end(self, last: Packet | None, error: Exception | None) -> None:
        self._closing = self.is_lost = True
        self._unsent.clear()
        self._received.clear()
        if last is END:
            self._send_end()
        elif last is not None:
            self._network.send(self, last)
        self._soon(lambda: self._protocol.connection_lost(error))

    def _vanish(self) -> None:
        """The process is dead: nobody here is told, and the other end hears of it some time."""
        if not self.is_lost:
            self._closing = self.is_lost = True
            self._network.peer_vanished(self.peer)

    # -- calling the protocol --------------------------------------------------------------------

    def _soon(self, function: Callable[[], None]) -> None:
        self._network.next(self._call, function)

    def _call(self, function: Callable[[], None]) -> None:
        """As the process that the protocol belongs to; one that fails loses its connection."""
        self.process.deliver(lambda: self._call_now(function))

    def _call_now(self, function: Callable[[], None]) -> None:
        try:
            self.process.run(function)
        except SimulatedCrash:
            # Whoever cut the power also ended the process.
            check(not self.process.is_alive, "the power is off but %s lives", self.process.name)
        except Exception as error:
            self._network.loop.call_exception_handler(
                {"message": f"A protocol on {self.name} failed.", "exception": error}
            )
            self.abort()


def _stream(protocol: asyncio.BaseProtocol) -> asyncio.Protocol | asyncio.BufferedProtocol:
    if isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol):
        return protocol
    raise InvariantError(f"{type(protocol).__name__} is no protocol for a stream")
