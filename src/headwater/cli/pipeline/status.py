"""`headwater pipeline list` and `status`: what the records of runs say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from headwater.cli.output.plain_table import Column, print_rows
from headwater.cli.pipeline.view import COLUMNS, query_cells, row_words, state_words, time_words
from headwater.pipeline.declared.problems import suggestion
from headwater.pipeline.runs.run_directory import RunDirectory, UnknownRunError, find_runs, runs_of
from headwater.pipeline.runs.run_record import RunRecord, RunState

_LIST_COLUMNS: Final = (
    Column("PIPELINE", "pipeline", 12),
    Column("MODE", "mode"),
    Column("STATE", "state", 8),
    Column("STARTED", "started"),
    Column("READ", "read"),
    Column("WRITTEN", "written"),
    Column("REJECTED", "rejected"),
    Column("LAG", "lag"),
    Column("PID", "pid"),
)


def print_list(root: Path, *, as_json: bool) -> None:
    """A line for each run below a directory."""
    records = [record for run in find_runs(root) if (record := run.read()) is not None]
    if as_json:
        for record in records:
            print(json.dumps(json.loads(record.to_json()), ensure_ascii=False))
        return
    if not records:
        print(f"No pipeline has run here: there are no runs in {root}.")
        return
    print_rows(_LIST_COLUMNS, [_row(record) for record in records])


def print_status(name: str, root: Path, *, as_json: bool) -> bool:
    """All that is known of a pipeline; whether no run of it failed or crashed."""
    records = [record for run in find_run(name, root) if (record := run.read()) is not None]
    for record in records:
        if as_json:
            print(json.dumps(json.loads(record.to_json()), ensure_ascii=False))
        else:
            _print_record(record)
    return all(record.state not in (RunState.FAILED, RunState.CRASHED) for record in records)


def find_run(name: str, root: Path) -> list[RunDirectory]:
    """The runs of a pipeline; `UnknownRunError` with the nearest name if there is none."""
    found = runs_of(root / name) if name and "/" not in name else []
    if not found:
        known = [run.path.name for run in find_runs(root) if run.path.parent == root]
        advice = suggestion(name, known) if known else f": none has run in {root}."
        raise UnknownRunError(f"There is no run of a pipeline called {name!r}{advice}")
    return found


def _print_record(record: RunRecord) -> None:
    print(f"Pipeline {record.pipeline!r} ({record.mode}): {state_words(record)}")
    facts = {
        "Started": f"{time_words(record.started_ms)} by process {record.pid} on {record.host}",
        "File": record.file,
        "Spark": record.master,
        "Spark's page": "" if record.state.is_over else record.spark_ui,
        "Spark's log": record.spark_log,
    }
    for title, fact in facts.items():
        if fact:
            print(f"  {title + ':':<14}{fact}")
    if not record.queries:
        return
    columns = [Column(column.upper(), column) for column in COLUMNS]
    rows = [dict(zip(COLUMNS, query_cells(query), strict=True)) for query in record.queries]
    print_rows(columns, rows)
    print(f"  In all: {row_words(record.rows)}")
    for query in record.queries:
        if query.batch_id is not None:
            print(f"  Batch {query.batch_id} of {query.name}: {row_words(query.batch_rows)}")
    for query in record.queries:
        if len(query.lag) > 1:
            parts = (
                f"{topic} {'?' if lag is None else f'{lag:,}'}" for topic, lag in query.lag.items()
            )
            print(f"  Lag of {query.name}: {', '.join(parts)}")


def _row(record: RunRecord) -> dict[str, object]:
    lags = [query.lag_total for query in record.queries if query.lag_total is not None]
    rows = record.rows
    return {
        "pipeline": record.pipeline,
        "mode": record.mode.replace(" ", "_"),
        "state": str(record.state),
        "started": time_words(record.started_ms).replace(" ", "T"),
        "read": rows.read,
        "written": rows.written,
        "rejected": rows.rejected,
        "lag": max(lags) if lags else None,
        "pid": None if record.state.is_over else record.pid,
    }
