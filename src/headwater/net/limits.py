"""What connections may take of the broker together, and how much they have taken.

All listeners of a broker share one `ConnectionLimits`. Its numbers may be changed while the broker
runs; they are read each time they matter. Beside them stand the two things that are counted
across connections: `ReceiveBudget`, the bytes of requests that are in memory, and
`ConnectionCounters`, who is connected and what went over all connections.

A few connections from the broker's own machine are accepted above all limits on their number.
Whoever has set a limit too low, or faces a crowd that takes up every place, gets in there and can
change it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Protocol

from headwater.base.line_budget import LineBudget
from headwater.net.receive_budget import ReceiveBudget, Receiver

_logger = logging.getLogger(__name__)

UNLIMITED = 2**31 - 1
REFUSAL_INTERVAL_S = 10.0
"""There is at most one line about refused connections in such a time."""


class Traffic(Receiver, Protocol):
    """What is counted on each connection."""

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
        #: In the order in which they came, so that what is done to all is done in one order.
        self._open: dict[Traffic, None] = {}
        self._open_by_host: dict[str, int] = {}
        self._reserved: set[Traffic] = set()
        self._closed_bytes_in = 0
        self._closed_bytes_out = 0
        self._closed_requests = 0

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def reserved(self) -> int:
        """How many are open that were accepted above the limits."""
        return len(self._reserved)

    def connections(self) -> Iterable[Traffic]:
        """Those that are open."""
        return self._open

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

    def add(self, connection: Traffic, host: str, *, is_reserved: bool = False) -> None:
        self.created += 1
        self._open[connection] = None
        if is_reserved:
            self._reserved.add(connection)
        self._open_by_host[host] = self._open_by_host.get(host, 0) + 1

    def remove(self, connection: Traffic, host: str) -> None:
        del self._open[connection]
        self._reserved.discard(connection)
        self.closed += 1
        self._closed_bytes_in += connection.bytes_in
        self._closed_bytes_out += connection.bytes_out
        self._closed_requests += connection.requests
        left = self._open_by_host[host] - 1
        if left:
            self._open_by_host[host] = left
        else:
            del self._open_by_host[host]


class RefusalLog:
    """Tells of connections that are not accepted: a line now and then, however many they are."""

    def __init__(self) -> None:
        self._budget = LineBudget(1, REFUSAL_INTERVAL_S)

    def refused(self, peer: object, reason: str, now_s: float) -> None:
        left_out = self._budget.take(now_s)
        if left_out is not None:
            others = f" (and {left_out} others were not)" if left_out else ""
            _logger.warning("%s is not accepted%s: %s", peer, others, reason)


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
        connections_reserved: int = 0,
        idle_max_s: float = 600.0,
        receive_progress_s: float = 30.0,
        send_progress_s: float = 360.0,
        requests_in_flight_max: int = 128,
    ) -> None:
        #: socket.request.max.bytes: a longer request ends its connection.
        self.request_size_max = request_size_max
        #: max.connections, max.connections.per.ip, and the overrides of the latter by address.
        self.connections_max = connections_max
        self.connections_max_per_ip = connections_max_per_ip
        self.connections_max_by_host = connections_max_by_host or {}
        #: How many from this machine are accepted above these limits; not in Kafka.
        self.connections_reserved = connections_reserved
        #: What the limit of open files leaves for connections; its owner sets it.
        self.descriptor_connections_max = UNLIMITED
        #: connections.max.idle.ms; no bound if not positive.
        self.idle_max_s = idle_max_s
        #: How many requests of one connection may wait for their answers; not in Kafka.
        self.requests_in_flight_max = requests_in_flight_max
        #: How long a request may stay half received, and an answer half sent, without the peer's
        #: moving it on; no bound if not positive; not in Kafka.
        self.receive_progress_s = receive_progress_s
        self.send_progress_s = send_progress_s
        self.counters = ConnectionCounters()
        self.refusals = RefusalLog()
        self.budget = ReceiveBudget(queued_bytes_max, self.counters.connections)

    @property
    def queued_bytes_max(self) -> int:
        """queued.max.request.bytes: requests in memory together; no bound if not positive."""
        return self.budget.held_bytes_max

    @queued_bytes_max.setter
    def queued_bytes_max(self, size: int) -> None:
        self.budget.held_bytes_max = size

    def refusal(self, host: str) -> str:
        """Why a further connection from that host is above the limits; empty if it is not."""
        counters = self.counters
        if counters.open >= self.connections_max:
            return f"there are {counters.open} connections already"
        if counters.open >= self.descriptor_connections_max:
            return f"the limit of open files has no room for more than {counters.open} connections"
        from_host = counters.open_from(host)
        if from_host >= self.connections_max_by_host.get(host, self.connections_max_per_ip):
            return f"there are {from_host} connections from it already"
        return ""

    def has_reserve(self, host: str) -> bool:
        """Whether a connection from that host is accepted above the limits."""
        return self.counters.reserved < self.connections_reserved and _is_this_machine(host)


def _is_this_machine(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
