"""One run of the benchmark of retries: what every measurement is given, and what it finds."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.bench_run import BenchRun
from bench.broker.servers import HeadwaterServer, Server
from bench.curves import CurveResults
from bench.retry.sizes import Sizes


@dataclass(slots=True)
class RetryResults(CurveResults):
    """Curves are of latencies of records, and of the lateness of retries."""


@dataclass(slots=True)
class Run(BenchRun[RetryResults]):
    sizes: Sizes
    #: Where brokers keep their data.
    scratch: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count, init=False)

    @contextmanager
    def broker(self) -> Iterator[Server]:
        """A broker of its own, which has just been started."""
        directory = self.scratch / self.name("broker")
        server = HeadwaterServer(directory)
        try:
            server.start()
            yield server
        finally:
            server.kill()
            shutil.rmtree(directory, ignore_errors=True)

    def name(self, noun: str) -> str:
        """One that nothing else has: of a topic, or of a group."""
        return f"{noun}-{next(self._numbers)}"
