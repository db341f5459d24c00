"""What a run shows while it goes."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from headwater.cli.pipeline.view import LineView, TableView, query_cells, query_line, run_table
from headwater.pipeline.runs.run_record import QueryRecord, RowCounts, RunRecord, RunState

QUERY = QueryRecord(
    "totals",
    is_planned=True,
    batch_id=3,
    rows=RowCounts(1000, 990, 10),
    batch_rows=RowCounts(1, 1, 0),
    rows_per_s=500.4,
    batch_ms=1234,
    lag={"o": 7},
)
RECORD = RunRecord(
    "pipe", RunState.RUNNING, 1, "here", 0, 10_000, spark_ui="http://ui", queries=(QUERY,)
)


def test_a_query_in_a_line() -> None:
    line = query_line(0, replace(QUERY, watermark="2026-01-01T00:00:00.000Z"))
    assert line.split(" ", 1)[1] == (
        "totals: batch 3: 1 row read, 1 written, 0 rejected, 1.2 s; "
        "so far 1,000 rows read, 990 written, 10 rejected; lag 7; watermark 2026-01-01 00:00:00"
    )


def test_what_is_not_known_is_a_dash() -> None:
    assert query_cells(QueryRecord("q")) == ("q", "-", "0", "0", "0", "-", "-", "-", "-", "-")
    assert query_cells(QueryRecord("q", is_planned=True))[1] == "first"


def test_the_start_is_told_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    view = LineView()
    view.stage("Starting Java.")
    query = QueryRecord("totals")
    for elapsed_ms in (1500, 2000, 2500):
        planned = replace(query, is_planned=elapsed_ms > 1500)
        view.show(replace(RECORD, updated_ms=elapsed_ms, spark_ui="", queries=(planned,)))
    assert capsys.readouterr().err.splitlines() == [
        "Starting Java.",
        "Pipeline 'pipe' is running after 1.5 s.",
        "totals: the first batch is planned after 2.0 s.",
    ]


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
    assert lines[0] == "Pipeline 'pipe' is running after 0.0 s; Spark's page is http://ui"
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
    console.print(run_table(RECORD, 120))
    text = console.export_text()
    assert "pipe (continuous): running for 10 s" in text and "http://ui" in text
    assert all(cell in text for cell in ("totals", "1,000", "990", "10", "500", "1.2 s", "7"))
    assert "watermark" not in text


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_narrow_terminal_leaves_out_columns_and_cuts_none(width: int) -> None:
    query = replace(QUERY, watermark="2026-01-01T00:00:00.123Z", state_row_count=12_345)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(run_table(replace(RECORD, queries=(query,)), width))
    text = console.export_text()
    assert "…" not in text
    assert all(cell in text for cell in ("totals", "read", "1,000", "written", "990", "rejected"))
    assert ("2026-01-01 00:00:00.123" in text) == (width >= 100)
    assert ("12,345" in text) == (width >= 120)


def test_a_table_stays_in_its_place_and_sentences_go_above() -> None:
    written = io.StringIO()
    view = TableView(Console(width=120, file=written, force_terminal=True, color_system=None))
    view.stage("Starting Java [17].")
    view.stage("Starting the session.")
    view.say("Starting.")
    view.show(RECORD)
    view.say("Stopping [now].")
    view.show(replace(RECORD, state=RunState.STOPPED, ended_ms=20_000))
    view.close()
    view.close()
    text = written.getvalue()
    assert text.index("Starting.") < text.index("running for 10 s") < text.index("Stopping [now].")
    assert "stopped after 20 s" in text
    # The stages of the start are one line, which is taken back.
    assert text.index("Starting Java [17].") < text.index("Starting the session.")
    assert text.index("Starting the session.") < text.index("running for 10 s")
    assert "\n" not in text[text.index("Starting Java") : text.index("Starting the session.")]
