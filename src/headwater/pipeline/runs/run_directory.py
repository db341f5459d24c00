"""The directory of a run: its lock, its record, and the file that asks it to stop.

    run.lock    held by the process that runs the pipeline; the kernel gives it back if that dies
    run.json    the record, replaced whole each time
    stop        there if somebody has asked for an end; it says `gracefully` or `now`
    checkpoints/

Whoever holds the lock alone writes the record and removes `stop`. Nothing here trusts a process id,
which may be another's by now: that a run is alive is told by its lock.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from headwater.base.errors import InvalidConfigError, KafkaError
from headwater.pipeline.runs.run_record import RunRecord, RunState, seen_state

RECORD: Final = "run.json"
LOCK: Final = "run.lock"
STOP: Final = "stop"


class StopRequest(StrEnum):
    GRACEFULLY = "gracefully"
    NOW = "now"


class AlreadyRunningError(KafkaError):
    """The pipeline runs in another process."""


class UnknownRunError(InvalidConfigError):
    """There is no run of that name."""


class RunDirectory:
    """One run's place on disk, from inside and from outside of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # -- for the run itself ----------------------------------------------------------------------

    @contextmanager
    def locked(self, pipeline: str) -> Iterator[None]:
        """Be the one process that runs here; `AlreadyRunningError` if there is one."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunningError(self._running_sentence(pipeline)) from None
            (self.path / STOP).unlink(missing_ok=True)
            yield

    def write(self, record: RunRecord) -> None:
        """Replace the record; a reader sees the old one or the new one, whole."""
        draft = self.path / f".{RECORD}.{os.getpid()}"
        draft.write_text(record.to_json(), encoding="utf-8")
        draft.replace(self.path / RECORD)

    def stop_request(self) -> StopRequest | None:
        """What somebody has asked for."""
        try:
            text = (self.path / STOP).read_text().strip()
        except OSError:
            return None
        return StopRequest.NOW if text == StopRequest.NOW else StopRequest.GRACEFULLY

    # -- for others ------------------------------------------------------------------------------

    def read(self) -> RunRecord | None:
        """The record, with the state that can be seen from here; None if there is none."""
        # The lock first: a run that ends in between has written how, and does not seem crashed.
        is_locked = self.is_locked()
        try:
            record = RunRecord.from_json((self.path / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if record is None:
            return None
        return _with_state(record, seen_state(record, is_locked=is_locked))

    def is_locked(self) -> bool:
        try:
            with open(self.path / LOCK) as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def ask_to_stop(self, request: StopRequest) -> None:
        draft = self.path / f".{STOP}.{os.getpid()}"
        draft.write_text(f"{request}\n")
        draft.replace(self.path / STOP)

    def _running_sentence(self, pipeline: str) -> str:
        record = self.read()
        who = f"by process {record.pid} on {record.host}" if record else "by another process"
        return (
            f"Pipeline {pipeline!r} is being run {who}; "
            f"`headwater pipeline stop {pipeline}` ends that."
        )


def find_runs(root: Path) -> list[RunDirectory]:
    """All runs below a directory of pipelines, backfills after the pipeline that they are of."""
    try:
        pipelines = sorted(path for path in root.iterdir() if path.is_dir())
    except OSError:
        return []
    return [run for pipeline in pipelines for run in runs_of(pipeline)]


def runs_of(pipeline: Path) -> list[RunDirectory]:
    """The run of a pipeline and its backfills."""
    backfills = sorted(pipeline.glob("backfill/*/"))
    return [RunDirectory(path) for path in (pipeline, *backfills) if (path / RECORD).exists()]


def _with_state(record: RunRecord, state: RunState) -> RunRecord:
    return replace(record, state=state)
