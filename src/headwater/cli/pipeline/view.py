"""What a run shows while it goes: a table that is redrawn on a terminal, plain lines elsewhere.

Until the queries run there is a line for each stage of the start; on a terminal it is one line,
which the next stage takes over. All of it goes to standard error; standard output is for the rows
of screens.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from headwater.base.counted import counted
from headwater.pipeline.runs.run_record import QueryRecord, RowCounts, RunRecord, RunState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

#: Of a query a line at most so often.
LINE_INTERVAL_MS: Final = 2_000
COLUMNS: Final = (
    *("query", "batch", "read", "written", "rejected"),
    *("rows/s", "batch time", "lag", "watermark", "state"),
)
#: The columns that are left out where they have nothing to tell, or where a terminal is too narrow,
#: the last first.
_OPTIONAL: Final = ("lag", "batch time", "watermark", "rows/s", "state")
_TEXTS: Final = ("query", "watermark")


class View(Protocol):
    """Where a run is seen."""

    def show(self, record: RunRecord) -> None: ...
    def stage(self, sentence: str) -> None:
        """Tell what is being done, until something else is."""

    def say(self, sentence: str) -> None: ...
    def print_rows(self, text: str) -> None: ...
    def close(self) -> None: ...


class LineView:
    """A line for a query when its first batch is planned, and whenever it has finished batches."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int, QueryRecord]] = {}
        self._planned: set[str] = set()
        self._has_told_start = False

    def show(self, record: RunRecord) -> None:
        elapsed = f"{(record.updated_ms - record.started_ms) / 1000:.1f} s"
        if not self._has_told_start:
            self._has_told_start = True
            page = f"; Spark's page is {record.spark_ui}" if record.spark_ui else "."
            self.say(f"Pipeline {record.pipeline!r} is running after {elapsed}{page}")
        for query in record.queries:
            if query.is_planned and query.name not in self._planned:
                self._planned.add(query.name)
                if query.batch_id is None:
                    self.say(f"{query.name}: the first batch is planned after {elapsed}.")
            shown_ms, shown = self._shown.get(query.name, (0, None))
            is_due = record.updated_ms - shown_ms >= LINE_INTERVAL_MS or record.state.is_over
            if query.batch_id is None or not is_due:
                continue
            if shown is None or shown.batch_id != query.batch_id:
                self._shown[query.name] = (record.updated_ms, query)
                self.say(query_line(record.updated_ms, query))

    def stage(self, sentence: str) -> None:
        self.say(sentence)

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
        self._stage: Live | None = None

    def stage(self, sentence: str) -> None:
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        if self._stage is None:
            self._stage = Live(console=self._console, transient=True)
            self._stage.start()
        self._stage.update(Spinner("dots", Text(sentence)), refresh=True)

    def show(self, record: RunRecord) -> None:
        self._end_stages()
        if not self._is_live:
            self._live.start()
            self._is_live = True
        self._live.update(run_table(record, self._console.width), refresh=True)

    def say(self, sentence: str) -> None:
        self._console.print(sentence, markup=False, highlight=False)

    def print_rows(self, text: str) -> None:
        print(text, flush=True)

    def close(self) -> None:
        self._end_stages()
        if self._is_live:
            self._is_live = False
            self._live.stop()

    def _end_stages(self) -> None:
        if self._stage is not None:
            self._stage.stop()
            self._stage = None


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
    """`12:00:05 totals: batch 3: 9 rows read, 8 written, 1 rejected, 1.2 s; so far ...; lag 0`."""
    cells = dict(zip(COLUMNS, query_cells(query), strict=True))
    clock = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().strftime("%H:%M:%S")
    parts = [
        f"batch {cells['batch']}: {row_words(query.batch_rows)}, {cells['batch time']}",
        f"so far {row_words(query.rows)}",
        f"lag {cells['lag']}" if query.lag_total is not None else "",
        f"watermark {cells['watermark']}" if query.watermark else "",
    ]
    return f"{clock} {query.name}: {'; '.join(filter(None, parts))}"


def row_words(rows: RowCounts) -> str:
    """`1 row read, 1 written, 0 rejected`."""
    return f"{counted(rows.read, 'row')} read, {rows.written:,} written, {rows.rejected:,} rejected"


def run_table(record: RunRecord, width: int) -> RenderableType:
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
    rows = [dict(zip(COLUMNS, query_cells(query), strict=True)) for query in record.queries]
    columns = _fitting_columns(rows, width)
    for column in columns:
        table.add_column(column, justify="left" if column in _TEXTS else "right", no_wrap=True)
    for query, row in zip(record.queries, rows, strict=True):
        style = "red" if query.error else None
        table.add_row(*(row[column] for column in columns), style=style)
    return table


def _fitting_columns(rows: Sequence[Mapping[str, str]], width: int) -> list[str]:
    """Those that have something to tell, as far as there is room for them."""
    silent = {name for name in _OPTIONAL if all(row[name] == "-" for row in rows)}
    columns = [name for name in COLUMNS if name not in silent]
    for name in reversed(_OPTIONAL):
        # A cell has a space on either side and a line behind it.
        widths = (max(map(len, (column, *(row[column] for row in rows)))) for column in columns)
        if sum(each + 3 for each in widths) < width:
            break
        if name in columns:
            columns.remove(name)
    return columns


def query_cells(query: QueryRecord) -> Sequence[str]:
    """The figures of a query as texts, in the order of `COLUMNS`."""
    lag = query.lag_total
    return (
        query.name,
        _batch(query),
        *(f"{count:,}" for count in (query.rows.read, query.rows.written, query.rows.rejected)),
        "-" if query.rows_per_s is None else _rate(query.rows_per_s),
        "-" if query.batch_ms is None else f"{query.batch_ms / 1000:.1f} s",
        "-" if lag is None else f"{lag:,}",
        _watermark(query.watermark),
        f"{query.state_row_count:,}" if query.state_row_count else "-",
    )


def _batch(query: QueryRecord) -> str:
    if query.batch_id is not None:
        return str(query.batch_id)
    return "first" if query.is_planned else "-"


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
        rejected = ", having rejected every row that it read" if record.rejected_all else ""
        return f"{record.state} at {time_words(record.ended_ms)}{rejected}"
    return f"{record.state} since {time_words(record.started_ms)}"
