"""One run of the benchmark: broker, session, and what a piece of work costs each process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.bench_run import BenchRun
from bench.broker.process_usage import cpu_seconds, own_cpu_seconds
from bench.broker.results import Goal, Results, Row
from bench.broker.run import take_turns
from bench.broker.servers import Server
from bench.rounds import Comparison
from bench.spark.sides import SIDES, Side
from bench.spark.sizes import Sizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Costs(NamedTuple):
    """Seconds: by the clock, and of CPU in Spark's Java, in its Python workers, in the broker."""

    clock_s: float
    java_s: float
    python_s: float
    broker_s: float


class CostRow(NamedTuple):
    """What the work on each row cost, by side; for a look at where time goes."""

    what: str
    side: Side
    row_count: int
    costs: list[Costs]


@dataclass(slots=True)
class SparkResults(Results):
    costs: list[CostRow] = field(default_factory=list)


@dataclass
class Run(BenchRun[SparkResults]):
    server: Server
    spark: SparkSession
    #: The process of Spark's Java, whose children are the Python workers.
    java_pid: int
    directory: Path
    sizes: Sizes
    save: Callable[[], None]

    def attempt(self, what: str, work: Callable[[], None]) -> None:
        super().attempt(what, work)
        self.save()

    def _words_for(self, error: Exception) -> tuple[str, str]:
        """Behind the first line of what Java says comes where it happened."""
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return first_line, str(error)

    def compare_speed(
        self,
        section: str,
        what: str,
        row_count: int,
        work: Callable[[Side], None],
        goal: Goal | None,
    ) -> None:
        """Let both sides do it in turns; rows each second are the figure."""
        for _ in range(self.sizes.warm_up_rounds):
            for side in SIDES:
                work(side)
        found = take_turns(SIDES, self.sizes.rounds, lambda side: self.observed(side, work))
        for side, costs in zip(SIDES, found, strict=True):
            self.results.costs.append(CostRow(f"{section}: {what}", side, row_count, costs))
        ours, peers = ([row_count / each.clock_s for each in costs] for costs in found)
        self.results.rows.append(Row(section, what, "rows/s", Comparison(ours, peers), goal))

    def observed(self, side: Side, work: Callable[[Side], None]) -> Costs:
        before = self._used()
        start_s = time.perf_counter()
        work(side)
        clock_s = time.perf_counter() - start_s
        after = self._used()
        return Costs(clock_s, *(later - now for now, later in zip(before, after, strict=True)))

    def _used(self) -> tuple[float, float, float]:
        """CPU time of Java, of the Python workers and of the broker so far."""
        java_s = own_cpu_seconds(self.java_pid)
        return java_s, cpu_seconds(self.java_pid) - java_s, cpu_seconds(self.server.pid)
