"""One run of the benchmark of audit and trace: what measurements are given, and what it finds."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.audit.sizes import Sizes
from bench.bench_run import BenchRun
from bench.broker.servers import HeadwaterServer, Server
from bench.curves import CurveResults


@dataclass(slots=True)
class AuditResults(CurveResults):
    """Rows alone: there is nothing to draw."""


@dataclass(slots=True)
class Run(BenchRun[AuditResults]):
    sizes: Sizes
    #: Where brokers keep their data.
    scratch: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count, init=False)

    @contextmanager
    def broker(self, **settings: str) -> Iterator[Server]:
        """A broker of its own, which has just been started; `_` stands for `.` in settings."""
        directory = self.scratch / self.name("broker")
        texts = {name.replace("_", "."): value for name, value in settings.items()}
        server = HeadwaterServer(directory, texts)
        try:
            server.start()
            yield server
        finally:
            server.kill()
            shutil.rmtree(directory, ignore_errors=True)

    def name(self, noun: str) -> str:
        """One that nothing else has."""
        return f"{noun}-{next(self._numbers)}"
