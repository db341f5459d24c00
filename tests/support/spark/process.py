"""A Spark application as a child process, with all of its own children, to be killed at will.

It may be told to halt at a point of the sink's protocol (`halt_points`). Whoever halted can then be
killed alone, or everything with it, or everything but it, so that it lives on and may be let go.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from headwater.pipeline.sink.exactly_once.halt_points import VARIABLE
from tests.support.waiting import POLL_INTERVAL_S

TIMEOUT_S = 400.0


class SparkProcess:
    """Runs a module of Python that takes lines and answers lines; a context manager."""

    def __init__(self, module: str, directory: Path, *arguments: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._log = directory / "spark.log"
        with self._log.open("ab") as log:
            # A session of its own, by which its children are found.
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.getcwd(), VARIABLE: str(directory)},
                start_new_session=True,
                text=True,
            )
        self._answers: queue.Queue[str] = queue.Queue()
        assert self._process.stdout is not None
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next line that it says; empty if it has ended."""
        try:
            return self._answers.get(timeout=TIMEOUT_S).strip()
        except queue.Empty:
            raise AssertionError(f"no answer: {self.log}") from None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    # -- halting ---------------------------------------------------------------------------------

    def arm(self, point: str, batch: int) -> None:
        """The first process that comes to the point in that batch halts there."""
        for old in ("halted", "go"):
            (self._directory / f"{point}.{old}").unlink(missing_ok=True)
        draft = self._directory / f"{point}.draft"
        draft.write_text(str(batch))
        draft.rename(self._directory / f"{point}.armed")

    def wait_halted(self, point: str) -> int:
        """The process that has halted."""
        marker = self._directory / f"{point}.halted"
        deadline_s = time.monotonic() + TIMEOUT_S
        while not marker.exists():
            assert self._answers.empty(), f"it went past the point: {self._answers.get()}"
            assert time.monotonic() < deadline_s, f"nothing halts: {self.log}"
            time.sleep(POLL_INTERVAL_S)
        return int(marker.read_text())

    def let_go(self, point: str) -> None:
        (self._directory / f"{point}.go").touch()

    # -- killing ---------------------------------------------------------------------------------

    def kill(self, *, but: int | None = None) -> None:
        """All of its processes at once, as when a machine loses its power.

        A process that is spared must not hear of it: the one that started it, which would end it
        when Spark is gone, goes first.
        """
        everybody = [found for found in self._members() if found != but]
        parent = parent_of(but) if but is not None else None
        everybody.sort(key=lambda found: found != parent)
        for found in everybody:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def wait_gone(self, process_id: int) -> None:
        """Until one that lives on has come to its end."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while is_alive(process_id):
            assert time.monotonic() < deadline_s, f"it goes on: {self.log}"
            time.sleep(POLL_INTERVAL_S)

    def _members(self) -> Iterator[int]:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                fields = _stat(int(entry.name))
                if fields and int(fields[3]) == self._process.pid and fields[0] != "Z":
                    yield int(entry.name)

    def _listen(self, stream: IO[str]) -> None:
        with contextlib.suppress(ValueError):
            for line in stream:
                self._answers.put(line)
        self._answers.put("")


def _stat(process_id: int) -> list[str]:
    """State, parent, group and session of a process; empty if it is gone."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The name before them may hold anything, and ends with the last bracket.
    return text.rpartition(")")[2].split()


def parent_of(process_id: int) -> int:
    return int(_stat(process_id)[1])


def is_alive(process_id: int) -> bool:
    fields = _stat(process_id)
    return bool(fields) and fields[0] != "Z"
