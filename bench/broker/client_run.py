"""What one run of a client came to, and what the server spent on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench.broker.process_usage import TICKS_PER_S, cpu_seconds
from bench.broker.servers import Server
from bench.broker.sizes import GIGABYTE, MEGABYTE


class ClientRun(NamedTuple):
    """As the client counts: the bytes are those of record values."""

    record_count: int
    size_bytes: int
    seconds: float


class ServerRun(NamedTuple):
    """The same with the CPU time that the server's processes took."""

    run: ClientRun
    cpu_s: float

    @property
    def megabytes_per_s(self) -> float:
        return self.run.size_bytes / MEGABYTE / self.run.seconds

    @property
    def records_per_s(self) -> float:
        return self.run.record_count / self.run.seconds

    @property
    def cpu_s_per_gigabyte(self) -> float:
        return self.cpu_s / (self.run.size_bytes / GIGABYTE)

    @property
    def cores(self) -> float:
        """How busy the server was, in cores."""
        return self.cpu_s / self.run.seconds


def observe(server: Server, work: Callable[[], ClientRun]) -> ServerRun:
    """Let a client work, and see what that costs the server."""
    before_s = cpu_seconds(server.pid)
    run = work()
    # A run that is too short for the kernel's clock took some time, too.
    return ServerRun(run, max(cpu_seconds(server.pid) - before_s, 1 / TICKS_PER_S))
