"""A broker of the demo's own: `headwater serve` as a process, on a free port, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.java.processes import forget_process, kill_process, start_process

_READY: Final = re.compile(r"^Headwater is ready: ([^\s,(]+)", re.MULTILINE)
_START_SECONDS_MAX: Final = 60.0
_STOP_SECONDS_MAX: Final = 20.0


class BrokerStartError(KafkaError):
    """The broker did not come up; the sentence says why, as far as it did."""


class RunningBroker(NamedTuple):
    address: str
    process_id: int


@contextlib.contextmanager
def running_broker(directory: Path) -> Iterator[RunningBroker]:
    """A broker with its data and its log in `directory`, stopped in order at the end."""
    log_path = directory / "broker.log"
    with log_path.open("wb") as log:
        process = start_process(
            [
                *(sys.executable, "-m", "headwater", "serve", "--listen", "127.0.0.1:0"),
                *("--data-dir", str(directory / "broker"), "--set", "num.partitions=4"),
            ],
            stderr=log,
        )
    try:
        yield RunningBroker(_wait_ready(process, log_path), process.pid)
    finally:
        _stop(process)


def _wait_ready(process: subprocess.Popen[bytes], log_path: Path) -> str:
    stdout = process.stdout
    deadline = time.monotonic() + _START_SECONDS_MAX
    output = b""
    while stdout is not None and time.monotonic() < deadline:
        if not select.select([stdout], [], [], 0.2)[0]:
            continue
        data = os.read(stdout.fileno(), 1 << 16)
        output += data
        ready = _READY.search(output.decode(errors="replace"))
        if ready is not None:
            return ready[1]
        if not data:
            break
    said = log_path.read_text(errors="replace").strip().splitlines()
    raise BrokerStartError(f"The broker did not start: {said[-1] if said else 'it said nothing'}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        # Its output is read to the end, so that it never waits for a full pipe.
        process.communicate(timeout=_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        kill_process(process)
    forget_process(process)
