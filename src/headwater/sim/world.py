"""What every simulated world has: virtual time, a network, a trace, clients' history, one seed.

Failures that nobody is told of are kept: callbacks and tasks that failed without an owner, and what
brokers log with a traceback, because that is never a peer's fault.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from headwater.base.randomness import SeededRandom
from headwater.sim.disk.faults import SimulatedCrash
from headwater.sim.histories.history import History, PropertyViolated
from headwater.sim.network.network import SimulatedNetwork
from headwater.sim.process import SimulatedProcess
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop

T = TypeVar("T")


class SimulatedWorld:
    def __init__(self, seed: int, *, timer_lateness_ms: float) -> None:
        self.seed = seed
        self.random = SeededRandom(seed)
        self.loop = VirtualLoop(
            self.random.child("loop").generator, timer_lateness_ms=timer_lateness_ms
        )
        self.trace = Trace(self.loop.time)
        self.network = SimulatedNetwork(self.loop, self.random.child("network"), self.trace)
        self.history = History()
        self.failures: list[logging.LogRecord] = []
        self._client_count = 0
        self._log_handler = _FailureHandler(self.failures)
        logging.getLogger("headwater").addHandler(self._log_handler)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the driver of this world to its end."""
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        # What the dead still log when they are buried goes nowhere.
        self.loop.close()
        logging.getLogger("headwater").removeHandler(self._log_handler)

    def start_client_process(self, kind: str) -> SimulatedProcess:
        """A process on a host of its own."""
        self._client_count += 1
        name = f"{kind}-{self._client_count}"
        return self.loop.start_process(name, name)

    def check_no_failure(self) -> None:
        """Nothing failed without anybody being told."""
        for happened in self.loop.unhandled:
            raise PropertyViolated(f"nothing fails unnoticed: {happened}") from happened.get(
                "exception"
            )
        for record in self.failures:
            error = record.exc_info[1] if record.exc_info else None
            raise PropertyViolated(f"nothing fails: {record.getMessage()}") from error


class _FailureHandler(logging.Handler):
    def __init__(self, failures: list[logging.LogRecord]) -> None:
        super().__init__(logging.WARNING)
        self._failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, SimulatedCrash):
            self._failures.append(record)
