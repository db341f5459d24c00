"""`headwater pipeline` as far as it goes without Spark."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.pipeline.builtin.catalogue import builtin_names, builtin_path
from headwater.pipeline.compiled.sinks.table_formats import FORMATS
from headwater.pipeline.declared.query_fault import QueryFault
from headwater.pipeline.runs.run_directory import RunDirectory, StopRequest
from headwater.pipeline.runs.run_record import (
    QueryRecord,
    RowCounts,
    RunRecord,
    RunState,
    SourceRows,
)
from headwater.pipeline.spark import session, sql_parser
from tests.support.command import run_command

GOOD = "sources: {orders: {topic: orders}}\nsinks: {copy: {topic: copy, format: raw}}\n"
QUERY = QueryRecord(
    "copy",
    batch_id=7,
    rows=RowCounts(12_345, 12_000, 345),
    batch_rows=RowCounts(1, 1, 0),
    sources={"orders": SourceRows(12_345, 345)},
    rows_per_s=1234.5,
    batch_ms=800,
    watermark="2026-01-01T00:00:00.000Z",
    lag={"orders": 5, "payments": None},
)
RECORD = RunRecord(
    "pipe",
    RunState.RUNNING,
    123,
    "here",
    1_767_225_600_000,
    1_767_225_700_000,
    file="/x/pipe.yaml",
    master="local[2]",
    spark_ui="http://127.0.0.1:4040",
    queries=(QUERY,),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.yaml"
    path.write_text(GOOD)
    return path


def test_a_good_file_is_told_in_a_line(file: Path) -> None:
    finished = run_command("pipeline", "validate", file)
    assert (finished.exit_code, finished.stderr) == (0, "")
    assert finished.stdout == (
        f"{file}: pipeline 'pipe' is well formed: 1 source, 0 steps, 1 sink.\n"
    )


@pytest.mark.parametrize("command", ["validate", "run"])
def test_problems_are_lines_with_places_and_no_traceback(file: Path, command: str) -> None:
    file.write_text(GOOD + "nam: x\ntrigger: 5\n")
    finished = run_command("pipeline", command, file)
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert finished.stderr.splitlines() == [
        f"{file}:3:1: the file has no field 'nam': did you mean 'name'?",
        f"{file}:4:10: 'trigger': '5' has no unit; write it like '5 seconds'.",
        f"headwater: 2 problems in {file}.",
    ]


SQL = GOOD.replace("sinks", "steps: {made: SELECT value FROM orders}\nsinks")


def test_queries_are_checked_by_spark_unless_that_is_not_wanted(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(queries: Sequence[str]) -> list[QueryFault | None]:
        assert queries == ["SELECT value FROM orders"]
        return [QueryFault("Syntax error at or near 'value'", 1, 7)]

    monkeypatch.setattr(sql_parser, "find_faults", find)
    file.write_text(SQL)
    found = run_command("pipeline", "validate", file)
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.splitlines() == [
        "Checking the SQL with Spark's parser; --no-sql skips that.",
        f"{file}:2:22: the query is wrong: Syntax error at or near 'value'.",
    ]
    skipped = run_command("pipeline", "validate", file, "--no-sql")
    assert (skipped.exit_code, skipped.stderr) == (0, "")


def test_without_spark_queries_are_not_checked_which_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_is_installed", lambda package: package != "pyspark")
    file.write_text(SQL)
    finished = run_command("pipeline", "validate", file)
    assert finished.exit_code == 0 and "is well formed" in finished.stdout
    [_, told] = finished.stderr.splitlines()
    assert told.startswith("The SQL was not checked: Spark needs the Python package pyspark: run")


def test_a_format_without_a_release_for_this_spark_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(GOOD.replace("topic: copy, format: raw", "iceberg: lake.copy"))
    monkeypatch.setitem(FORMATS, "iceberg", replace(FORMATS["iceberg"], releases={}))
    finished = run_command("pipeline", "validate", file)
    assert finished.exit_code == 1
    assert finished.stderr.startswith(f"headwater: {file}:2: sink 'copy' needs Iceberg, of which")


def test_a_name_that_is_no_file_and_not_built_in() -> None:
    finished = run_command("pipeline", "validate", "archiv")
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert "did you mean 'archive'?" in finished.stderr
    missing = run_command("pipeline", "validate", "missing.yaml")
    assert missing.stderr == "missing.yaml: no such file or directory.\n"


def test_a_variable_is_set(file: Path) -> None:
    file.write_text(GOOD.replace("orders}", "'${topic}'}"))
    assert run_command("pipeline", "validate", file).exit_code == 1
    assert run_command("pipeline", "validate", file, "--set", "topic=x").exit_code == 0
    assert run_command("pipeline", "validate", file, "--set", "topic").exit_code == 2


def test_built_in_pipelines_are_shown() -> None:
    listed = run_command("pipeline", "show")
    assert [line.split()[0] for line in listed.lines] == list(builtin_names())
    assert all(len(line.split()) > 3 for line in listed.lines)
    shown = run_command("pipeline", "show", "archive")
    assert shown.stdout == builtin_path("archive").read_text()
    assert run_command("pipeline", "show", "nothing").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--once", "--from", "2026-01-01"),
        ("--from", "yesterday"),
        ("--until", "soon"),
        ("--from", "2026-01-02", "--until", "2026-01-01"),
        ("--conf", "x"),
        ("--set", "=x"),
    ],
)
def test_a_command_line_that_makes_no_sense(file: Path, arguments: tuple[str, ...]) -> None:
    finished = run_command("pipeline", "run", file, *arguments)
    assert finished.exit_code == 2 and "Traceback" not in finished.stderr


def test_runs_are_listed_with_their_state(tmp_path: Path) -> None:
    empty = run_command("pipeline", "list", "--state-dir", tmp_path)
    assert (empty.exit_code, empty.lines) == (
        0,
        [f"No pipeline has run here: there are no runs in {tmp_path}."],
    )
    for name in ("one", "two"):
        run = RunDirectory(tmp_path / name)
        run.path.mkdir()
        run.write(replace(RECORD, pipeline=name))
    with RunDirectory(tmp_path / "two").locked("two"):
        listed = run_command("pipeline", "list", "--state-dir", tmp_path)
        as_json = run_command("pipeline", "list", "--state-dir", tmp_path, "--json")
    assert [line.split()[0:3:2] for line in listed.lines] == [
        ["PIPELINE", "STATE"],
        ["one", "crashed"],
        ["two", "running"],
    ]
    assert listed.lines[0].split()[4:7] == ["READ", "WRITTEN", "REJECTED"]
    assert listed.lines[1].split()[4:7] == ["12345", "12000", "345"]
    assert [json.loads(line)["state"] for line in as_json.lines] == ["crashed", "running"]


@pytest.mark.parametrize(
    ("state", "exit_code"),
    [(RunState.FINISHED, 0), (RunState.STOPPED, 0), (RunState.FAILED, 1), (RunState.RUNNING, 1)],
)
def test_the_status_of_a_run_that_is_over(tmp_path: Path, state: RunState, exit_code: int) -> None:
    run = RunDirectory(tmp_path / "pipe")
    run.path.mkdir()
    run.write(replace(RECORD, state=state, error="it broke", ended_ms=1_767_225_800_000))
    finished = run_command("pipeline", "status", "pipe", "--state-dir", tmp_path)
    assert finished.exit_code == exit_code
    # Without its lock, one that says it runs has crashed.
    seen = "crashed" if state is RunState.RUNNING else str(state)
    assert finished.lines[0].startswith(f"Pipeline 'pipe' (continuous): {seen}")
    assert ("it broke" in finished.stdout) == (state is RunState.FAILED)
    assert "2026-01-01 00:00:00" in finished.stdout
    assert "  In all: 12,345 rows read, 12,000 written, 345 rejected" in finished.lines
    assert "  Batch 7 of copy: 1 row read, 1 written, 0 rejected" in finished.lines


def test_a_run_that_rejected_everything_does_not_look_like_success(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "pipe")
    run.path.mkdir()
    rejected = replace(QUERY, rows=RowCounts(5, 0, 5), sources={"orders": SourceRows(5, 5)})
    ended = replace(RECORD, state=RunState.FINISHED, ended_ms=1_767_225_800_000)
    run.write(replace(ended, queries=(rejected,)))
    finished = run_command("pipeline", "status", "pipe", "--state-dir", tmp_path)
    assert finished.lines[0].endswith(", having rejected every row that it read")


def test_the_status_of_what_never_ran(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    RunDirectory(tmp_path / "pipe").write(RECORD)
    finished = run_command("pipeline", "status", "pip", "--state-dir", tmp_path)
    assert finished.exit_code == 1
    assert finished.stderr == (
        "headwater: There is no run of a pipeline called 'pip': did you mean 'pipe'?\n"
    )


ENDS_WHEN_ASKED = """
import sys, time
from pathlib import Path
from headwater.pipeline.runs.run_directory import RunDirectory
run = RunDirectory(Path(sys.argv[1]))
with run.locked("pipe"):
    print("locked", flush=True)
    while run.stop_request() is None:
        time.sleep(0.01)
"""


def test_a_run_is_asked_to_stop_and_waited_for(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "pipe")
    run.path.mkdir()
    run.write(RECORD)
    idle = run_command("pipeline", "stop", "pipe", "--state-dir", tmp_path)
    assert (idle.exit_code, idle.stdout) == (0, "Pipeline 'pipe' is not running.\n")
    child = subprocess.Popen(
        [sys.executable, "-c", ENDS_WHEN_ASKED, str(run.path)], stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None and child.stdout.readline() == b"locked\n"
        finished = run_command("pipeline", "stop", "pipe", "--state-dir", tmp_path)
        assert (finished.exit_code, child.wait()) == (0, 0)


def test_a_run_that_does_not_end_in_time(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "pipe")
    with run.locked("pipe"):
        run.write(RECORD)
        finished = run_command(
            "pipeline", "stop", "pipe", "--now", "--timeout", 0, "--state-dir", tmp_path
        )
        assert run.stop_request() is StopRequest.NOW
    assert finished.exit_code == 1 and "has not ended within 0 s" in finished.stderr


def test_nothing_heavy_is_imported_for_help_and_validation(file: Path) -> None:
    code = (
        "import sys; from headwater.cli.app import main; "
        "assert not {'yaml', 'pyspark', 'pyarrow', 'headwater.pipeline'} & set(sys.modules); "
        f"main(['pipeline', 'validate', {str(file)!r}]); "
        "assert not {'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (0, "")
