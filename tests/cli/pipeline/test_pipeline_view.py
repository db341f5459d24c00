"""What a run shows while it goes."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from headwater.cli.pipeline.view import LineView, TableView, query_cells, query_line, run_table
from headwater.pipeline.runs.run_record import QueryRecord, RunRecord, RunState

QUERY = QueryRecord(
    "totals", batch_id=3, row_count=1000, rows_per_s=500.4, batch_ms=1234, lag={"o": 7}
)
RECORD = RunRecord(
    "pipe", RunState.RUNNING, 1, "here", 0, 10_000, spark_ui="http://ui", queries=(QUERY,)
)


def test_a_query_in_a_line() -> None:
    line = query_line(0, replace(QUERY, watermark="2026-01-01T00:00:00.000Z"))
    assert line.split(" ", 1)[1] == (
        "totals: batch 3, 1,000 rows at 500/s, 1.2 s, lag 7, watermark 2026-01-01 00:00:00"
    )


def test_what_is_not_known_is_a_dash() -> None:
    assert query_cells(QueryRecord("q")) == ("q", "-", "0", "-", "-", "-", "-", "-")


def test_lines_are_written_for_new_batches_and_not_too_often(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = LineView()
    shown = 0
    for step in range(100):
        query = replace(QUERY, batch_id=step // 2)
        view.show(replace(RECORD, updated_ms=step * 500, queries=(query,)))
    view.show(replace(RECORD, updated_ms=50_000, queries=(replace(QUERY, batch_id=60),)))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Pipeline 'pipe' is running; Spark's page is http://ui"
    shown = sum("totals: batch" in line for line in lines)
    assert shown == len(lines) - 1 and 24 <= shown <= 27


def test_the_last_batch_of_a_run_is_always_shown(capsys: pytest.CaptureFixture[str]) -> None:
    view = LineView()
    view.show(RECORD)
    ended = replace(RECORD, state=RunState.FINISHED, updated_ms=10_001)
    view.show(replace(ended, queries=(replace(QUERY, batch_id=4),)))
    assert "totals: batch 4" in capsys.readouterr().err


def test_a_table_has_all_that_one_watches() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(run_table(RECORD))
    text = console.export_text()
    assert "pipe (continuous): running for 10 s" in text and "http://ui" in text
    assert all(cell in text for cell in ("totals", "1,000", "500", "1.2 s", "7"))


def test_a_table_stays_in_its_place_and_sentences_go_above() -> None:
    written = io.StringIO()
    view = TableView(Console(width=120, file=written, force_terminal=True, color_system=None))
    view.say("Starting.")
    view.show(RECORD)
    view.say("Stopping [now].")
    view.show(replace(RECORD, state=RunState.STOPPED, ended_ms=20_000))
    view.close()
    view.close()
    text = written.getvalue()
    assert text.index("Starting.") < text.index("running for 10 s") < text.index("Stopping [now].")
    assert "stopped after 20 s" in text
