"""What `headwater perf` shows: a bar while it runs, then throughput and percentiles."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from headwater.cli.output.plain_table import Column, print_table
from headwater.cli.output.sizes import size_text

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
_REFRESH_S: Final = 0.1


class Latencies:
    """Times that things took, each for a number of records."""

    def __init__(self) -> None:
        self._weighted: list[tuple[float, int]] = []

    def add(self, seconds: float, record_count: int = 1) -> None:
        self._weighted.append((seconds, record_count))

    def summary_ms(self) -> dict[str, float]:
        """Mean, percentiles and maximum by their names; empty if nothing was added."""
        values = sorted(self._weighted)
        total = sum(count for _, count in values)
        if not total:
            return {}
        summary = {"mean": sum(value * count for value, count in values) / total}
        seen, index = 0, 0
        for percentile in PERCENTILES:
            while seen + values[index][1] < total * percentile / 100:
                seen += values[index][1]
                index += 1
            summary[f"p{percentile:g}"] = values[index][0]
        summary["max"] = values[-1][0]
        return {name: seconds * 1000 for name, seconds in summary.items()}


class PerfResult(NamedTuple):
    """A measurement: how much in how long, and how long single things took."""

    title: str
    record_count: int
    size_bytes: int
    elapsed_s: float
    latencies: Sequence[tuple[str, Latencies]] = ()
    #: More that is worth telling, in words.
    remarks: Sequence[str] = ()

    def as_dict(self) -> dict[str, object]:
        """For other programs; latencies in milliseconds."""
        return {
            "title": self.title,
            "records": self.record_count,
            "bytes": self.size_bytes,
            "seconds": round(self.elapsed_s, 6),
            "records_per_second": round(self.record_count / self._seconds, 3),
            "bytes_per_second": round(self.size_bytes / self._seconds, 3),
            "latency_ms": {
                name: {key: round(value, 4) for key, value in latencies.summary_ms().items()}
                for name, latencies in self.latencies
            },
        }

    @property
    def _seconds(self) -> float:
        return max(self.elapsed_s, 1e-9)

    def show(self, *, as_json: bool) -> None:
        if as_json:
            print(json.dumps(self.as_dict()))
            return
        columns = [Column(key.upper(), key, is_number=True) for key in _RESULT_KEYS]
        values = (
            f"{self.record_count:,}",
            size_text(self.size_bytes),
            f"{self.elapsed_s:.2f}",
            f"{self.record_count / self._seconds:,.0f}",
            size_text(self.size_bytes / self._seconds),
        )
        print_table(self.title, columns, [dict(zip(_RESULT_KEYS, values, strict=True))])
        summaries = [
            (name, summary) for name, each in self.latencies if (summary := each.summary_ms())
        ]
        if summaries:
            _print_percentiles(summaries)
        for remark in self.remarks:
            print(remark)


_RESULT_KEYS: Final = ("records", "size", "seconds", "records/s", "size/s")


def _print_percentiles(summaries: Sequence[tuple[str, dict[str, float]]]) -> None:
    keys = list(summaries[0][1])
    columns = [Column("WAY", "way"), *(Column(key.upper(), key, is_number=True) for key in keys)]
    rows = [
        {"way": name, **{key: f"{summary[key]:,.2f}" for key in keys}}
        for name, summary in summaries
    ]
    print_table("Latency in ms", columns, rows)


@contextlib.asynccontextmanager
async def progress_bar(
    title: str, total: int | None, done: Callable[[], int], *, is_shown: bool
) -> AsyncIterator[None]:
    """Shows on standard error how far `done` is, as long as the block runs."""
    console = Console(stderr=True)
    if not is_shown or not console.is_terminal:
        yield
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        bar = progress.add_task(title, total=total, rate="")

        async def follow() -> None:
            loop = asyncio.get_running_loop()
            started_s = loop.time()
            while True:
                rate = done() / max(loop.time() - started_s, 1e-9)
                progress.update(bar, completed=done(), rate=f"{rate:,.0f}/s", refresh=True)
                await asyncio.sleep(_REFRESH_S)

        task = asyncio.get_running_loop().create_task(follow())
        try:
            yield
        finally:
            task.cancel()
