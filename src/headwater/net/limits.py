"""What connections may take of the broker together, and how much they have taken.

All listeners of a broker share one `ConnectionLimits`. Its numbers may be changed while the broker
runs; they are read each time they matter. Beside them stand the two things that are counted
across connections: `ReceiveBudget`, the bytes of requests that are in memory, and
`ConnectionCounters`, who is connected and what went over all connections.

The budget works like this. A request takes its size from the moment its length is known until it
is answered. One is let in while less than the bound is held: so a request larger than the bound
makes progress too, and the sum exceeds the bound by less than one request. A connection that is not
let in stops reading and stands in line; bytes given back let in the one that has waited longest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

UNLIMITED = 2**31 - 1


class ReceiveBudget:
    """Counts the bytes of requests in memory, and lets connections wait for their turn.

    Whenever somebody waits although there is room, a round of turns is on its way. While there is
    no bound and nobody waits, `is_open` is set, and connections change `held_bytes` themselves.
    """

    __slots__ = (
        "_held_bytes_max",
        "_is_round_coming",
        "_is_turn",
        "_loop",
        "_waiting",
        "held_bytes",
        "is_open",
    )

    def __init__(self, held_bytes_max: int = -1) -> None:
        self.held_bytes = 0
        self.is_open = held_bytes_max <= 0
        self._held_bytes_max = held_bytes_max
        self._waiting: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_round_coming = False
        self._is_turn = False

    @property
    def held_bytes_max(self) -> int:
        """The bound; none if it is not positive."""
        return self._held_bytes_max

    @held_bytes_max.setter
    def held_bytes_max(self, size: int) -> None:
        self._held_bytes_max = size
        self.is_open = size <= 0 and not self._waiting
        self.call_round()

    @property
    def has_room(self) -> bool:
        return self.held_bytes < self._held_bytes_max or self._held_bytes_max <= 0

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def take(self, size: int) -> bool:
        """Count `size` in, or answer that it must wait, be it for room or behind others."""
        if not self.has_room or (self._waiting and not self._is_turn):
            return False
        self._is_turn = False
        self.held_bytes += size
        return True

    def give_back(self, size: int) -> None:
        self.held_bytes -= size
        if self._waiting:
            self.call_round()

    def wait(self, loop: asyncio.AbstractEventLoop, turn: Callable[[], None]) -> None:
        """Stand in line: `turn` is called once, from the loop, and may take one request then."""
        self._waiting.append(turn)
        self.is_open = False
        self._loop = loop
        self.call_round()

    def call_round(self) -> None:
        """Let those who wait have their turns soon, if somebody waits and there is room."""
        # Turns are never taken inside of a call that gives back: that is some handler at work.
        if self._loop and self._waiting and not self._is_round_coming and self.has_room:
            self._is_round_coming = True
            self._loop.call_soon(self._take_turns)

    def _take_turns(self) -> None:
        for _ in range(len(self._waiting)):
            if not self.has_room:
                break
            self._is_turn = True
            self._waiting.popleft()()
        self._is_turn = False
        self._is_round_coming = False
        self.is_open = self._held_bytes_max <= 0 and not self._waiting
        self.call_round()


class Traffic(Protocol):
    """What is counted on each connection."""

    @property
    def bytes_in(self) -> int: ...

    @property
    def bytes_out(self) -> int: ...

    @property
    def requests(self) -> int: ...


class ConnectionCounters:
    """Who is connected, and totals: those of open connections are added up only when asked for."""

    def __init__(self) -> None:
        self.created = 0
        self.closed = 0
        self.refused = 0
        self._open: set[Traffic] = set()
        self._open_by_host: dict[str, int] = {}
        self._closed_bytes_in = 0
        self._closed_bytes_out = 0
        self._closed_requests = 0

    @property
    def open(self) -> int:
        return len(self._open)

    def open_from(self, host: str) -> int:
        return self._open_by_host.get(host, 0)

    @property
    def bytes_in(self) -> int:
        return self._closed_bytes_in + sum(connection.bytes_in for connection in self._open)

    @property
    def bytes_out(self) -> int:
        return self._closed_bytes_out + sum(connection.bytes_out for connection in self._open)

    @property
    def requests(self) -> int:
        return self._closed_requests + sum(connection.requests for connection in self._open)

    def add(self, connection: Traffic, host: str) -> None:
        self.created += 1
        self._open.add(connection)
        self._open_by_host[host] = self._open_by_host.get(host, 0) + 1

    def remove(self, connection: Traffic, host: str) -> None:
        self._open.remove(connection)
        self.closed += 1
        self._closed_bytes_in += connection.bytes_in
        self._closed_bytes_out += connection.bytes_out
        self._closed_requests += connection.requests
        left = self._open_by_host[host] - 1
        if left:
            self._open_by_host[host] = left
        else:
            del self._open_by_host[host]


class ConnectionLimits:
    """The bounds; where Kafka has a setting for one, the comment names it and the default is it."""

    def __init__(
        self,
        *,
        request_size_max: int = 100 * 1024 * 1024,
        queued_bytes_max: int = -1,
        connections_max: int = UNLIMITED,
        connections_max_per_ip: int = UNLIMITED,
        connections_max_by_host: Mapping[str, int] | None = None,
        idle_max_s: float = 600.0,
        requests_in_flight_max: int = 128,
    ) -> None:
        #: socket.request.max.bytes: a longer request ends its connection.
        self.request_size_max = request_size_max
        #: max.connections, max.connections.per.ip, and the overrides of the latter by address.
        self.connections_max = connections_max
        self.connections_max_per_ip = connections_max_per_ip
        self.connections_max_by_host = connections_max_by_host or {}
        #: connections.max.idle.ms; no bound if not positive.
        self.idle_max_s = idle_max_s
        #: How many requests of one connection may wait for their answers; not in Kafka.
        self.requests_in_flight_max = requests_in_flight_max
        self.budget = ReceiveBudget(queued_bytes_max)
        self.counters = ConnectionCounters()

    @property
    def queued_bytes_max(self) -> int:
        """queued.max.request.bytes: requests in memory together; no bound if not positive."""
        return self.budget.held_bytes_max

    @queued_bytes_max.setter
    def queued_bytes_max(self, size: int) -> None:
        self.budget.held_bytes_max = size

    def refusal(self, host: str) -> str:
        """Why a further connection from that host is not accepted; empty if it is."""
        counters = self.counters
        if counters.open >= self.connections_max:
            return f"there are {counters.open} connections already"
        from_host = counters.open_from(host)
        if from_host >= self.connections_max_by_host.get(host, self.connections_max_per_ip):
            return f"there are {from_host} connections from it already"
        return ""
