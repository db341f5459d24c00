"""One process runs a pipeline; others see from the lock whether it lives."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.pipeline.runs.run_directory import (
    AlreadyRunningError,
    RunDirectory,
    StopRequest,
    find_runs,
    runs_of,
)
from headwater.pipeline.runs.run_record import RunRecord, RunState

RECORD = RunRecord("pipe", RunState.RUNNING, 123, "here", 1, 2)

HOLD = """
import sys
from pathlib import Path
from headwater.pipeline.runs.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1])).locked("pipe"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_pipeline_does_not_run_twice(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "deep" / "pipe")
    with run.locked("pipe"):
        run.write(RECORD)
        with pytest.raises(AlreadyRunningError) as error, run.locked("pipe"):
            pass
        assert str(error.value) == (
            "Pipeline 'pipe' is being run by process 123 on here; "
            "`headwater pipeline stop pipe` ends that."
        )
        assert run.read() == RECORD
    with run.locked("pipe"):
        assert run.is_locked()


def test_a_run_that_is_gone_without_a_word_has_crashed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None and child.stdout.readline() == b"locked\n"
        run.write(RECORD)
        assert run.is_locked() and run.read() == RECORD
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert not run.is_locked()
        assert run.read() == replace(RECORD, state=RunState.CRASHED)


def test_a_stop_is_asked_for_and_forgotten_by_the_next_run(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    with run.locked("pipe"):
        assert run.stop_request() is None
        run.ask_to_stop(StopRequest.GRACEFULLY)
        assert run.stop_request() is StopRequest.GRACEFULLY
        run.ask_to_stop(StopRequest.NOW)
        assert run.stop_request() is StopRequest.NOW
    with run.locked("pipe"):
        assert run.stop_request() is None


def test_a_record_that_is_none_is_not_there(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.read() is None
    (tmp_path / "run.json").write_bytes(b"\xff{")
    assert run.read() is None


def test_runs_are_found_with_their_backfills(tmp_path: Path) -> None:
    for name in ("b", "a", "a/backfill/1-2", "a/backfill/3-4"):
        RunDirectory(tmp_path / name).path.mkdir(parents=True, exist_ok=True)
        RunDirectory(tmp_path / name).write(RECORD)
    (tmp_path / "c").mkdir()
    found = [str(run.path.relative_to(tmp_path)) for run in find_runs(tmp_path)]
    assert found == ["a", "a/backfill/1-2", "a/backfill/3-4", "b"]
    assert [run.path.name for run in runs_of(tmp_path / "b")] == ["b"]
    assert find_runs(tmp_path / "nowhere") == []
