"""Kafka's own client, in Java, of its newest release: see `JavaClient.java`, which Java compiles.

The tasks run one after the other in one process, because each start of Java takes a second.
"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.java.processes import kill_process, start_process
from tests.support.kafka.node import require_java_client

_PROGRAM = Path(__file__).with_name("JavaClient.java")
#: More than a task waits for anything.
_TIMEOUT_S = 120.0


class TaskFailedError(Exception):
    """A task ended with an exception, which the message names."""


class JavaClient:
    def __init__(self, errors_file: Path) -> None:
        """`errors_file` gets what the client logs."""
        java = require_java_client()
        self._errors_file = errors_file
        with errors_file.open("wb") as errors:
            self._process = start_process(
                java.command(str(_PROGRAM), jvm_flags=("-Xmx256m", *java.quick_start_flags)),
                stdin=subprocess.PIPE,
                stderr=errors,
            )

    def run(self, task: str, *args: str) -> dict[str, str]:
        """What the task prints: names, and what they stand for."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        guard = threading.Timer(_TIMEOUT_S, process.kill)
        guard.start()
        try:
            process.stdin.write(("\t".join((task, *args)) + "\n").encode())
            process.stdin.flush()
            told: dict[str, str] = {}
            for line in process.stdout:
                name, _, value = line.decode().rstrip("\n").partition(" ")
                if name == "finished":
                    return told
                if name == "failed":
                    raise TaskFailedError(value)
                told[name] = value
        finally:
            guard.cancel()
        raise AssertionError(f"{task} did not end: {self._errors_file.read_text()[-4000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        kill_process(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
