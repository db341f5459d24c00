"""`headwater pipeline stop`: asks the runs of a pipeline to end, and waits until they have."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from headwater.cli.pipeline.status import find_run
from headwater.cli.pipeline.view import state_words
from headwater.pipeline.runs.run_directory import RunDirectory, StopRequest

POLL_S: Final = 0.1


def stop_runs(name: str, root: Path, *, now: bool, timeout_s: float) -> bool:
    """Whether all of them have ended in time."""
    running = [run for run in find_run(name, root) if run.is_locked()]
    if not running:
        print(f"Pipeline {name!r} is not running.")
        return True
    for run in running:
        run.ask_to_stop(StopRequest.NOW if now else StopRequest.GRACEFULLY)
    deadline_s = time.monotonic() + timeout_s
    while (left := [run for run in running if run.is_locked()]) and time.monotonic() < deadline_s:
        time.sleep(POLL_S)
    for run in running:
        _report(name, run)
    if left:
        print(
            f"headwater: pipeline {name!r} has not ended within {timeout_s:g} s; it will end when "
            "its current batches are done, or at once with --now.",
            file=sys.stderr,
        )
    return not left


def _report(name: str, run: RunDirectory) -> None:
    record = run.read()
    if record is not None:
        print(f"Pipeline {name!r} ({record.mode}): {state_words(record)}")
