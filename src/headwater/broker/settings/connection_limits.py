"""The limits of connections, as the settings have them, followed while the broker runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.rows.network import RESERVED_CONNECTIONS, host_limits
from headwater.net.limits import ConnectionLimits

_DYNAMIC: Final = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.requests.in.flight.per.connection",
    "socket.request.progress.timeout.ms",
    "socket.answer.progress.timeout.ms",
)
#: The memory of a container, where it is bounded, in both versions of control groups.
_CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def make_connection_limits(settings: BrokerSettings) -> ConnectionLimits:
    """Limits that follow the settings from now on."""
    limits = ConnectionLimits(
        request_size_max=settings.integer("socket.request.max.bytes"),
        queued_bytes_max=_queued_bytes_max(settings),
        connections_reserved=RESERVED_CONNECTIONS,
        idle_max_s=settings.integer("connections.max.idle.ms") / 1000,
    )
    _follow(settings, limits)
    settings.subscribe(_DYNAMIC, lambda _: _follow(settings, limits))
    return limits


def _follow(settings: BrokerSettings, limits: ConnectionLimits) -> None:
    limits.connections_max = settings.integer("max.connections")
    limits.connections_max_per_ip = settings.integer("max.connections.per.ip")
    limits.connections_max_by_host = host_limits(settings.values)
    limits.requests_in_flight_max = settings.integer("max.requests.in.flight.per.connection")
    limits.receive_progress_s = settings.integer("socket.request.progress.timeout.ms") / 1000
    limits.send_progress_s = settings.integer("socket.answer.progress.timeout.ms") / 1000


def _queued_bytes_max(settings: BrokerSettings) -> int:
    """As the setting says; without it, no more than what leaves the machine room to breathe."""
    configured = settings.integer("queued.max.request.bytes")
    if configured > 0:
        return configured
    return memory_bytes() // 2


def memory_bytes() -> int:
    """What this process may have: the machine's memory, or less in a container that bounds it."""
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CONTAINER_LIMITS:
        # Absent, or the word "max" where there is no bound.
        with contextlib.suppress(OSError, ValueError):
            bounds.append(int(path.read_text()))
    return min(bounds)
