"""One run of the benchmark of clusters: what every measurement is given, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bench.bench_run import BenchRun
from bench.broker.results import Results
from bench.cluster.pair import Pair
from bench.cluster.sizes import Sizes


@dataclass(slots=True)
class ClusterResults(Results):
    """Rows beside the peer's, and what only our side was measured for, in words."""

    alone: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Run(BenchRun[ClusterResults]):
    pair: Pair
    sizes: Sizes
    #: Where measurements may leave files.
    scratch: Path

    def _words_for(self, error: Exception) -> tuple[str, str]:
        words = str(error) or type(error).__name__
        return words, words
