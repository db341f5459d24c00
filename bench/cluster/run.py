"""One run of the benchmark of clusters: what every measurement is given, and what it finds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.broker.results import Results
from bench.cluster.pair import Pair
from bench.cluster.sizes import Sizes


@dataclass(slots=True)
class ClusterResults(Results):
    """Rows beside the peer's, and what only our side was measured for, in words."""

    alone: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    pair: Pair
    sizes: Sizes
    results: ClusterResults
    #: Where measurements may leave files.
    scratch: Path
    _start_s: float = field(default_factory=time.monotonic)

    def say(self, line: str) -> None:
        """A line of progress."""
        minutes, seconds = divmod(int(time.monotonic() - self._start_s), 60)
        print(f"{minutes:3d}:{seconds:02d}  {line}", file=sys.stderr, flush=True)

    def attempt(self, what: str, work: Callable[[], None]) -> None:
        """Measure something; if that fails, the rest of the run goes on without it."""
        self.say(what)
        try:
            work()
        except Exception as error:
            reason = str(error) or type(error).__name__
            self.results.failures.append(f"{what}: {reason}")
            self.say(f"{what} failed: {reason}")
