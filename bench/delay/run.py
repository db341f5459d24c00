"""One run of the benchmark of delays: what every measurement is given, and what it finds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.bench_run import BenchRun
from bench.broker.raw_client import RawClient
from bench.curves import CurveResults
from bench.delay.sizes import Sizes
from headwater.testing.broker_process import BrokerProcess

DELAYED: Final = {"delay.mode": "header"}


@dataclass(slots=True)
class DelayResults(CurveResults):
    """Curves are of lateness."""


@dataclass(slots=True)
class Run(BenchRun[DelayResults]):
    sizes: Sizes
    #: Where brokers keep their data.
    scratch: Path
    #: A checkout of the source to compare appends with, if one was named.
    before: Path | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count, init=False)

    @contextmanager
    def broker(self) -> Iterator[BrokerProcess]:
        """A broker of its own, which has just been started."""
        with BrokerProcess(self.scratch / f"broker-{next(self._numbers)}") as running:
            yield running

    def topic(self, broker: BrokerProcess, partitions: int = 1, *, is_delayed: bool) -> str:
        """A new topic, which is served."""
        name = f"topic-{next(self._numbers)}"
        with RawClient(broker.port) as client:
            client.create_topic(name, partitions, DELAYED if is_delayed else None)
        return name

    def _words_for(self, error: Exception) -> tuple[str, str]:
        words = str(error) or type(error).__name__
        return words, words
