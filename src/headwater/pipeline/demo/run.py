"""The demo from its beginning to its end: what `headwater demo` shows, step by step.

A broker is started, a shop's orders and payments are sent to it, and three of the pipelines that
come with Headwater turn them into tables, while they come. Then they are stopped, more is sent, and
they go on where they were. In the end every table is compared with a calculation in plain Python
(`outcome`).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.live import Live

from headwater.base.ids import TopicPartition
from headwater.pipeline.declared.specs.run_mode import Continuous, Once
from headwater.pipeline.demo.broker_process import running_broker
from headwater.pipeline.demo.comparison import Verdict
from headwater.pipeline.demo.outcome import READ_TOPICS, REJECTED, REVENUE, Outcome
from headwater.pipeline.demo.screen import PipelineState, Screen, lag_table, pipelines_table
from headwater.pipeline.demo.sending import SentRecord, send_wave
from headwater.pipeline.demo.shop import ORDERS, PAYMENTS, ShopRecord, ShopStream, make_stream
from headwater.pipeline.demo.topics import create_topics, lag_by_group
from headwater.pipeline.demo.under_way import load_builtin, started
from headwater.pipeline.lag.lag_reporter import report_lag
from headwater.pipeline.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    # One for each core: tables this small are not split further.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
#: How often a batch is made: quicker than by default, for somebody watches.
_EVERY: Final = "2 seconds"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    seed: int = 2026
    order_count: int = 20_000
    #: How long the first wave takes; the second is sent at once.
    seconds: float = 20.0
    #: Where the data is, if it is not to go away.
    directory: Path | None = None
    chart: Path = Path("headwater-demo.png")
    master: str = "local[2]"
    #: Settings of Spark, over those of the demo.
    configs: Mapping[str, str] = field(default_factory=dict)


def run_demo(options: DemoOptions, console: Console) -> int:
    """Run it all; the exit code is 0 if every result is right."""
    screen = Screen(console)
    start = time.monotonic()
    stream = make_stream(options.seed, options.order_count)
    with _directory(options) as directory, running_broker(directory) as broker:
        verdicts = _Demo(options, screen, directory, stream, broker.address).run()
    wrong_count = sum(1 for verdict in verdicts if not verdict.is_right)
    if wrong_count:
        screen.say(f"\n{wrong_count} of {len(verdicts)} results are WRONG (seed {options.seed}).")
        return 1
    seconds = time.monotonic() - start
    screen.say(f"\nAll {len(verdicts)} results are right, after {seconds:.0f} s.")
    if options.directory is not None:
        screen.say(f"The broker's data and the lake are in {options.directory}.")
    screen.say(_NEXT)
    return 0


_NEXT: Final = """
What to try next:
  headwater demo --keep          keeps the lake in ./headwater-demo, to read it yourself
  headwater pipeline show join   the file of a pipeline, to copy and change
  docs/pipelines.md              a worked example, from an empty directory on"""


@contextlib.contextmanager
def _directory(options: DemoOptions) -> Iterator[Path]:
    """Where everything is; it goes away unless it was named."""
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
        yield options.directory.resolve()
        return
    directory = Path(tempfile.mkdtemp(prefix="headwater-demo-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class _Demo:
    def __init__(
        self,
        options: DemoOptions,
        screen: Screen,
        directory: Path,
        stream: ShopStream,
        address: str,
    ) -> None:
        self._options = options
        self._screen = screen
        self._stream = stream
        self._address = address
        self._lake = directory / "lake"
        self._sent: list[SentRecord] = []
        #: Where each partition ends, by what was sent.
        self._ends: dict[TopicPartition, int] = {}
        self._specs = {
            name: load_builtin(name, self._variables(name), address, directory / "state")
            for name in READ_TOPICS
        }

    def _variables(self, name: str) -> dict[str, str]:
        """As `--set` would give them."""
        if name == "archive":
            topics, lake = f"{ORDERS},{PAYMENTS}", str(self._lake / "archive")
            return {"topics": topics, "lake": lake, "every": _EVERY}
        return {"lake": str(self._lake), "every": _EVERY}

    def run(self) -> list[Verdict]:
        self._screen.step(
            "A broker",
            f"Headwater serves on {self._address}, in a process of its own. Topics: {ORDERS}, "
            f"{PAYMENTS}, and those that the pipelines write to.",
        )
        create_topics(self._address, (ORDERS, PAYMENTS, REVENUE, *REJECTED))
        self._screen.step(
            "Spark",
            "Plain Structured Streaming on this machine; another master makes it a cluster.",
        )
        spark = start_session(
            "headwater-demo",
            master=self._options.master,
            configs={**SPARK_SETTINGS, **self._options.configs},
            say=self._screen.say,
        )
        try:
            reporter = report_lag(spark)
            self._while_it_comes(spark)
            reporter.flush()
            self._after_a_break(spark)
            reporter.close()
        finally:
            # Whatever broke it off may have taken Java with it.
            with contextlib.suppress(Exception):
                spark.stop()
        outcome = Outcome(self._address, self._lake, self._stream, self._sent)
        return outcome.show(self._screen, self._options.chart)

    def _while_it_comes(self, spark: SparkSession) -> None:
        self._screen.step(
            "Three pipelines, and a shop that opens",
            "archive keeps every record as Parquet, aggregate sums revenue by minute and category, "
            "join finds the payment of each order. Each is a small file: `headwater pipeline show "
            "join`. They run while the first half hour of the shop comes in, within "
            f"{self._options.seconds:.0f} s.",
        )
        with started(self._specs, spark, Continuous()) as under_way, self._live() as show:
            self._send(
                self._stream.first_wave,
                self._options.seconds,
                lambda: show(under_way.states(self._ends)),
            )
            under_way.wait_until_read(self._ends, show)
            under_way.finish()

    def _after_a_break(self, spark: SparkSession) -> None:
        self._screen.step(
            "Stopped, and the stream goes on",
            "The pipelines have stopped. Ten more minutes of the shop come meanwhile, among them "
            "orders that are too late to count. Lag is what a pipeline has not read yet:",
        )
        self._send(self._stream.second_wave, 0.0, lambda: None)
        lags = lag_by_group(self._address, READ_TOPICS)
        self._screen.show(lag_table(lags))
        self._screen.step(
            "Started again",
            "As with --once: they go on from their checkpoints, read all there is, and end.",
        )
        with started(self._specs, spark, Once()) as under_way, self._live() as show:
            under_way.wait_until_ended(self._ends, show)

    def _send(
        self, records: Sequence[ShopRecord], seconds: float, show: Callable[[], None]
    ) -> None:
        def on_progress(written: list[SentRecord]) -> None:
            for record in written:
                partition = TopicPartition(record.topic, record.partition)
                self._ends[partition] = max(self._ends.get(partition, 0), record.offset + 1)
            self._sent += written
            show()

        send_wave(self._address, records, seconds=seconds, on_progress=on_progress)

    @contextlib.contextmanager
    def _live(self) -> Iterator[Callable[[list[PipelineState]], None]]:
        """A table that is kept up to date; what it shows last stays."""
        console = self._screen.console
        with Live(console=console, refresh_per_second=4) as live:
            yield lambda states: live.update(pipelines_table(states, len(self._sent)))
        if not console.is_terminal:
            console.print()
