"""What `headwater perf partitions` shows: a table, curves, and the number that it would take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.base.extras import missing_package
from headwater.cli.output.colour import heading
from headwater.cli.output.plain_table import Column, Row, print_table
from headwater.cli.output.sizes import size_text
from headwater.cli.perf.partition_counts import CountResult, smallest_of

#: What is within this of the best is as good: two runs differ by as much.
GOOD_SHARE: Final = 0.9
_BAR_WIDTH: Final = 40

_COLUMNS: Final = (
    Column("PARTITIONS", "partitions", is_number=True),
    Column("WRITTEN", "written", is_number=True),
    Column("READ", "read", is_number=True),
    Column("P50 MS", "p50", is_number=True),
    Column("P99 MS", "p99", is_number=True),
    Column("START S", "start", is_number=True),
    Column("FAILOVER S", "failover", is_number=True),
    Column("STOP S", "stop", is_number=True),
)


def show(results: Sequence[CountResult], target_per_s: float | None) -> None:
    """The table, a curve of what grows and of what it costs, and the advice."""
    factor = results[0].replica_count
    replicas = "1 replica" if factor == 1 else f"{factor} replicas"
    print_table(f"Topics of {replicas}", _COLUMNS, [_row(each) for each in results])
    for line in _curve(results, "Written a second", lambda each: each.written_per_s, _rate):
        print(line)
    print()
    if any(each.failover_s is not None for each in results):
        for line in _curve(results, "Failover", lambda each: each.failover_s, _seconds):
            print(line)
        print()
    print(advice(results, target_per_s))


def advice(results: Sequence[CountResult], target_per_s: float | None) -> str:
    """The fewest partitions that do: more of them only take longer to start, fail over and stop."""
    best = max(results, key=lambda each: each.written_per_s)
    if target_per_s is not None:
        enough = [each for each in results if each.written_per_s >= target_per_s]
        if not enough:
            return (
                f"None reaches {_rate(target_per_s)}: {best.partition_count} come nearest with "
                f"{_rate(best.written_per_s)}. One producer may be what limits it; measure with "
                "several, from several machines."
            )
        chosen = min(enough, key=lambda each: each.partition_count)
        reason = f"the fewest of these with {_rate(target_per_s)}"
    else:
        chosen = smallest_of(results, GOOD_SHARE)
        reason = f"the fewest of these with {GOOD_SHARE:.0%} of the most that was written"
    more = [each for each in results if each.partition_count > chosen.partition_count]
    cost = ""
    if more and chosen.failover_s is not None and more[-1].failover_s is not None:
        cost = (
            f" {more[-1].partition_count} would fail over in {_seconds(more[-1].failover_s)} "
            f"instead of {_seconds(chosen.failover_s)}."
        )
    return (
        f"Take {chosen.partition_count}: {reason}.{cost} A group never has more members at work "
        "than there are partitions, and their number can grow later but not shrink."
    )


def require_matplotlib() -> None:
    """MissingPackageError if it is not there, before anything is measured."""
    if find_spec("matplotlib") is None:
        raise missing_package("--chart", "matplotlib", "demo")


def draw_chart(results: Sequence[CountResult], path: Path) -> None:
    """The same as a picture, of the kind that the name of the file says."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    counts = [each.partition_count for each in results]
    figure = Figure(figsize=(9, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(counts, [each.written_per_s / 1e6 for each in results], "o-", label="written")
    above.plot(counts, [each.read_per_s / 1e6 for each in results], "o--", label="read")
    above.set_ylabel("MB/s")
    below.plot(counts, [each.start_s for each in results], "o-", label="start")
    failovers = [each.failover_s for each in results]
    if all(each is not None for each in failovers):
        below.plot(counts, failovers, "o-", label="failover")
    below.plot(counts, [each.stop_s for each in results], "o-", label="stop")
    below.plot(counts, [each.p99_ms / 1000 for each in results], "o--", label="p99 latency")
    below.set_ylabel("seconds")
    below.set_yscale("log")
    below.set_xlabel("partitions")
    for axes in (above, below):
        axes.set_xscale("log", base=2)
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    below.set_xticks(counts, [str(each) for each in counts])
    figure.savefig(path, dpi=110)


def _row(result: CountResult) -> Row:
    return {
        "partitions": result.partition_count,
        "written": _rate(result.written_per_s),
        "read": _rate(result.read_per_s),
        "p50": f"{result.p50_ms:,.2f}",
        "p99": f"{result.p99_ms:,.2f}",
        "start": f"{result.start_s:.3f}",
        "failover": None if result.failover_s is None else f"{result.failover_s:.3f}",
        "stop": f"{result.stop_s:.3f}",
    }


def _curve(
    results: Sequence[CountResult],
    title: str,
    value_of: Callable[[CountResult], float | None],
    text_of: Callable[[float], str],
) -> Iterator[str]:
    """A line for each number of partitions, as long as its value is large."""
    yield heading(title)
    values = [(each.partition_count, value_of(each)) for each in results]
    largest = max((value for _, value in values if value is not None), default=0.0)
    for count, value in values:
        if value is not None:
            length = round(_BAR_WIDTH * value / largest) if largest else 0
            yield f"{count:>6}  {'#' * length:<{_BAR_WIDTH}}  {text_of(value)}"


def _rate(bytes_per_s: float) -> str:
    return f"{size_text(bytes_per_s)}/s"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
