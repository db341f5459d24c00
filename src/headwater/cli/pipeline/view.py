"""What a run shows while it goes: a table that is redrawn on a terminal, plain lines elsewhere.

All of it goes to standard error; standard output is for the rows of screens.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from headwater.pipeline.runs.run_record import QueryRecord, RunRecord, RunState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Of a query a line at most so often.
LINE_INTERVAL_MS: Final = 2_000
COLUMNS: Final = ("query", "batch", "rows", "rows/s", "batch time", "lag", "watermark", "state")


class View(Protocol):
    """Where a run is seen."""

    def show(self, record: RunRecord) -> None: ...
    def say(self, sentence: str) -> None: ...
    def print_rows(self, text: str) -> None: ...
    def close(self) -> None: ...


class LineView:
    """A line for a query whenever it has finished batches."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int, QueryRecord]] = {}
        self._has_told_page = False

    def show(self, record: RunRecord) -> None:
        if record.spark_ui and not self._has_told_page:
            self._has_told_page = True
            self.say(f"Pipeline {record.pipeline!r} is running; Spark's page is {record.spark_ui}")
        for query in record.queries:
            shown_ms, shown = self._shown.get(query.name, (0, None))
            is_due = record.updated_ms - shown_ms >= LINE_INTERVAL_MS or record.state.is_over
            if query.batch_id is None or not is_due:
                continue
            if shown is None or shown.batch_id != query.batch_id:
                self._shown[query.name] = (record.updated_ms, query)
                self.say(query_line(record.updated_ms, query))

    def say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    def print_rows(self, text: str) -> None:
        print(text, flush=True)

    def close(self) -> None:
        pass


class TableView:
    """A table of queries that stays in its place; sentences go above it."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._is_live = False

    def show(self, record: RunRecord) -> None:
        if not self._is_live:
            self._live.start()
            self._is_live = True
        self._live.update(run_table(record), refresh=True)

    def say(self, sentence: str) -> None:
        self._console.print(sentence, markup=False, highlight=False)

    def print_rows(self, text: str) -> None:
        print(text, flush=True)

    def close(self) -> None:
        if self._is_live:
            self._is_live = False
            self._live.stop()


@contextmanager
def make_view(*, live: bool) -> Iterator[View]:
    """The view for where standard error goes."""
    view: View = LineView()
    if live and sys.stderr.isatty():
        from rich.console import Console

        view = TableView(Console(stderr=True))
    try:
        yield view
    finally:
        view.close()


def query_line(now_ms: int, query: QueryRecord) -> str:
    """`12:00:05 totals: batch 3, 1,000 rows at 500/s, 1.2 s, lag 0, watermark 11:50:00`."""
    cells = query_cells(query)
    clock = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().strftime("%H:%M:%S")
    parts = [
        f"batch {cells[1]}",
        f"{cells[2]} rows at {cells[3]}/s",
        cells[4],
        f"lag {cells[5]}" if query.lag_total is not None else "",
        f"watermark {cells[6]}" if query.watermark else "",
    ]
    return f"{clock} {query.name}: {', '.join(filter(None, parts))}"


def run_table(record: RunRecord) -> RenderableType:
    """The table of a run, with its state above and where to look further below."""
    from rich.table import Table

    seconds = max(0, ((record.ended_ms or record.updated_ms) - record.started_ms) // 1000)
    title = f"{record.pipeline} ({record.mode}): {record.state} for {_elapsed(seconds)}"
    if record.state.is_over:
        title = f"{record.pipeline} ({record.mode}): {record.state} after {_elapsed(seconds)}"
    table = Table(
        title=title,
        caption=f"Spark's page: {record.spark_ui}" if record.spark_ui else None,
        title_justify="left",
        caption_justify="left",
        header_style="bold",
    )
    for position, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if position in (0, 6) else "right", no_wrap=True)
    for query in record.queries:
        table.add_row(*query_cells(query), style="red" if query.error else None)
    return table


def query_cells(query: QueryRecord) -> Sequence[str]:
    """The figures of a query as texts, in the order of `COLUMNS`."""
    lag = query.lag_total
    return (
        query.name,
        "-" if query.batch_id is None else str(query.batch_id),
        f"{query.row_count:,}",
        "-" if query.rows_per_s is None else _rate(query.rows_per_s),
        "-" if query.batch_ms is None else f"{query.batch_ms / 1000:.1f} s",
        "-" if lag is None else f"{lag:,}",
        _watermark(query.watermark),
        f"{query.state_row_count:,}" if query.state_row_count else "-",
    )


def _rate(rows_per_s: float) -> str:
    return f"{rows_per_s:.1f}" if 0 < rows_per_s < 10 else f"{rows_per_s:,.0f}"


def _watermark(text: str | None) -> str:
    return "-" if text is None else text.removesuffix(".000Z").removesuffix("Z").replace("T", " ")


def _elapsed(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def time_words(time_ms: int) -> str:
    """A moment in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))


def state_words(record: RunRecord) -> str:
    """The state, and since when or why."""
    if record.state is RunState.FAILED:
        return f"failed: {record.error}"
    if record.state is RunState.CRASHED:
        return f"crashed: it was last seen at {time_words(record.updated_ms)}"
    if record.ended_ms is not None:
        return f"{record.state} at {time_words(record.ended_ms)}"
    return f"{record.state} since {time_words(record.started_ms)}"
