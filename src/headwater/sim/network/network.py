"""A network in memory: listening, connecting, partitions, and what happens to bytes on their way.

It carries streams, as TCP does: what arrives is what was sent, in order, or the connection is lost.
When it arrives, in which pieces, and whether the connection survives is drawn from the seed, within
the `NetworkConditions`, which may be changed at any time. A partition holds back what is under way
between two hosts until it is healed. See `transport` for the two ends of a connection.

Addresses are the names of hosts; every process is on one (see `process`), and "localhost" and the
like mean its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headwater.base.checks import require
from headwater.base.randomness import SeededRandom
from headwater.sim.network.transport import Packet, SimulatedTransport
from headwater.sim.process import SimulatedProcess, current_process
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop

_OWN_HOST: Final = frozenset({None, "", "0.0.0.0", "::", "localhost", "127.0.0.1", "::1"})
_FIRST_FREE_PORT: Final = 32_768

Factory = Callable[[], asyncio.BaseProtocol]


@dataclass(slots=True)
class NetworkConditions:
    """How well the network works; the defaults are a quiet one."""

    delay_ms_min: float = 0.05
    delay_ms_max: float = 0.5
    #: Some packets take long, as after a retransmission.
    slow_probability: float = 0.0
    slow_delay_ms_max: float = 500.0
    #: A packet carries at most this many bytes, and with `random_sizes` any number up to it.
    packet_bytes_max: int = 65_536
    random_sizes: bool = False
    #: How likely a packet is to end its connection instead of arriving.
    loss_probability: float = 0.0
    #: What a connection may have under way in one direction: beyond it, bytes wait at the sender.
    window_bytes: int = 262_144
    connect_timeout_ms: float = 10_000.0
    #: How long the peer of a process that died may go without hearing of it.
    silence_ms_max: float = 1_000.0


class SimulatedServer:
    """What `create_server` returns."""

    def __init__(self, network: SimulatedNetwork, process: SimulatedProcess, port: int) -> None:
        self._network = network
        self._address = (process.host, port)

    @property
    def sockets(self) -> tuple[ListeningSocket, ...]:
        return (ListeningSocket(*self._address),) if self.is_serving() else ()

    def is_serving(self) -> bool:
        return self._network.server_at(self._address) is self

    def close(self) -> None:
        """Accept no more; the connections there are stay."""
        self._network.stop_listening(self._address, self)

    async def wait_closed(self) -> None:
        """Closing takes no time."""


class ListeningSocket:
    """As much of a socket as somebody wants to know who asks a server for its port."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def getsockname(self) -> tuple[str, int]:
        return self._address


@dataclass(slots=True)
class _Listening:
    server: SimulatedServer
    process: SimulatedProcess
    factory: Factory


class SimulatedNetwork:
    def __init__(
        self,
        loop: VirtualLoop,
        random: SeededRandom,
        trace: Trace,
        conditions: NetworkConditions | None = None,
    ) -> None:
        self.loop = loop
        self.trace = trace
        self.conditions = NetworkConditions() if conditions is None else conditions
        self.random = random.generator
        self.transports: list[SimulatedTransport] = []
        self._listening: dict[tuple[str, int], _Listening] = {}
        self._next_port = _FIRST_FREE_PORT
        self._connection_count = 0
        self._cut: set[tuple[str, str]] = set()
        self._held: list[SimulatedTransport] = []
        # Packets under way belong to no process: they arrive even if their sender is dead.
        self._context = contextvars.copy_context()
        loop.network = self

    # -- listening and connecting ----------------------------------------------------------------

    def listen(self, factory: Factory, host: str | None, port: int) -> SimulatedServer:
        process = _caller()
        if host not in _OWN_HOST and host != process.host:
            raise _os_error(errno.EADDRNOTAVAIL, host, port)
        port = port or self._free_port()
        address = (process.host, port)
        if address in self._listening:
            raise _os_error(errno.EADDRINUSE, *address)
        server = SimulatedServer(self, process, port)
        self._listening[address] = _Listening(server, process, factory)
        process.add_kill_callback(server.close)
        return server

    def server_at(self, address: tuple[str, int]) -> SimulatedServer | None:
        found = self._listening.get(address)
        return None if found is None else found.server

    def stop_listening(self, address: tuple[str, int], server: SimulatedServer) -> None:
        if self.server_at(address) is server:
            del self._listening[address]

    async def connect(
        self, factory: Factory, host: str, port: int
    ) -> tuple[SimulatedTransport, asyncio.BaseProtocol]:
        process = _caller()
        target = process.host if host in _OWN_HOST else host
        await asyncio.sleep(self.delay_s())
        if self.is_cut(process.host, target) or self.is_cut(target, process.host):
            await asyncio.sleep(self.conditions.connect_timeout_ms / 1000)
            raise _os_error(errno.ETIMEDOUT, target, port)
        listening = self._listening.get((target, port))
        if listening is None:
            raise _os_error(errno.ECONNREFUSED, target, port)
        local = (process.host, self._free_port())
        number = self._connection_count
        self._connection_count += 1
        client = SimulatedTransport(self, process, f"{number}>", local, (target, port))
        server = SimulatedTransport(self, listening.process, f"{number}<", (target, port), local)
        client.peer, server.peer = server, client
        self.transports = [each for each in self.transports if not each.is_lost]
        self.transports += [client, server]
        self.trace.note("network", f"connection {number} from {local} to {(target, port)}")
        # A host accepts connections also while the process is paused that listens.
        listening.process.deliver(lambda: _accept(listening, server))
        await asyncio.sleep(self.delay_s())
        if client.is_lost:
            raise _os_error(errno.ECONNRESET, target, port)
        protocol = factory()
        client.start(protocol)
        # As asyncio does: the caller goes on when the protocol knows of its connection.
        await asyncio.sleep(0)
        return client, protocol

    def _free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    # -- packets ---------------------------------------------------------------------------------

    def delay_s(self) -> float:
        conditions = self.conditions
        if self.random.random() < conditions.slow_probability:
            return self.random.random() * conditions.slow_delay_ms_max / 1000
        return self.random.uniform(conditions.delay_ms_min, conditions.delay_ms_max) / 1000

    def packet_size(self, size_max: int) -> int:
        size = min(size_max, self.conditions.packet_bytes_max)
        if self.conditions.random_sizes and size > 1:
            # Small pieces are the interesting ones, but not so many that nothing gets done.
            size = self.random.choice((size, self.random.randint(1, size), min(size, 64)))
        return size

    def send(self, sender: SimulatedTransport, packet: Packet) -> None:
        """Take a packet; it arrives behind those that the same end sent before."""
        if sender.is_broken:
            return
        if packet.data and self.random.random() < self.conditions.loss_probability:
            self.break_connection(sender)
            return
        sender.under_way.append(packet)
        self.soon(self.delay_s(), self._arrive, sender)

    def _arrive(self, sender: SimulatedTransport) -> None:
        # Each packet has a timer; whichever fires first brings the packet that was sent first.
        receiver = sender.peer
        if self.is_cut(sender.process.host, receiver.process.host):
            self._held.append(sender)
            return
        if not sender.under_way:
            return
        packet = sender.under_way.popleft()
        self.trace.note(
            "network",
            f"{sender.name} {packet.kind} {len(packet.data)} bytes, {zlib.crc32(packet.data):08x}",
        )
        receiver.receive(packet)

    def break_connection(self, transport: SimulatedTransport) -> None:
        """Lose a connection in the middle: either end notices in its own time."""
        self.trace.note("network", f"{transport.name} breaks")
        for end in (transport, transport.peer):
            # Nothing arrives any more, whatever an end sends that has not noticed yet.
            end.is_broken = True
            end.under_way.clear()
            self.soon(self.delay_s(), end.lose, ConnectionResetError("the connection broke"))

    def peer_vanished(self, transport: SimulatedTransport) -> None:
        """The process at the other end is dead, and the host will say so, now or later."""
        delay_s = self.random.random() * self.conditions.silence_ms_max / 1000
        self.soon(delay_s, transport.lose, ConnectionResetError("the peer is gone"))

    def soon(self, delay_s: float, callback: Callable[..., object], *arguments: object) -> None:
        self.loop.call_later(delay_s, callback, *arguments, context=self._context)

    def next(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call in the loop's next round, in the order of asking."""
        self.loop.call_soon(callback, *arguments, context=self._context)

    # -- partitions ------------------------------------------------------------------------------

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def cut(self, source: str, target: str) -> None:
        """From now on nothing arrives at `target` that comes from `source`; not the reverse."""
        self.trace.note("network", f"cut from {source} to {target}")
        self._cut.add((source, target))

    def mend(self, source: str, target: str) -> None:
        """End one cut: what it held back comes after all."""
        self.trace.note("network", f"mended from {source} to {target}")
        self._cut.discard((source, target))
        self._release_held()

    def heal(self) -> None:
        """End all partitions."""
        self.trace.note("network", "healed")
        self._cut.clear()
        self._release_held()

    def _release_held(self) -> None:
        # What is still cut off comes back here when it arrives.
        held, self._held = self._held, []
        for sender in held:
            self.soon(self.delay_s(), self._arrive, sender)


def _accept(listening: _Listening, transport: SimulatedTransport) -> None:
    if not transport.is_lost:
        transport.start(listening.process.run(listening.factory))


def _caller() -> SimulatedProcess:
    return require(current_process(), "only a process can use the network")


def _os_error(code: int, host: str | None, port: int) -> OSError:
    return OSError(code, f"{os.strerror(code)}: {host}:{port}")
