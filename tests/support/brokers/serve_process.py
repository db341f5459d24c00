"""`headwater serve` as a child process, for tests of the command itself."""

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

#: The address of the first broker, its id, and the cluster's.
READY = re.compile(
    r"^Headwater is ready: ([^(]+) \(brokers? (\d+)[\d, ]*, cluster ([^,]+),.*\n", re.M
)
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class ServeProcess:
    """One run of the command; `output` is what it has printed so far."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.output = ""
        self.address = ""
        #: Those of all brokers.
        self.addresses: list[str] = []
        self.broker_id = -1
        self.cluster_id = ""

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        stdout = self.process.stdout
        assert stdout is not None
        while (ready := READY.search(self.output)) is None:
            assert time.monotonic() < deadline, f"not ready in time: {self.output}"
            if not select.select([stdout], [], [], 0.5)[0]:
                continue
            data = os.read(stdout.fileno(), 1 << 16)
            assert data, f"it ended: {self.output}{self.process.communicate()[1].decode()}"
            self.output += data.decode()
        self.addresses, self.cluster_id = ready[1].split(", "), ready[3]
        self.address = self.addresses[0]
        self.broker_id = int(ready[2])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal and wait: exit code, all of stdout, stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str, str]:
        try:
            rest, errors = self.process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            rest, errors = self.process.communicate()
            raise AssertionError(f"it did not end: {self.output}{rest!r}{errors!r}") from None
        self.output += rest.decode()
        return self.process.returncode, self.output, errors.decode()


@contextlib.contextmanager
def serving(data_dir: Path, *arguments: str, listen: str = "127.0.0.1:0") -> Iterator[ServeProcess]:
    """A broker on a free port that is ready, and gone afterwards."""
    broker = ServeProcess("--listen", listen, "--data-dir", str(data_dir), *arguments)
    try:
        broker.wait_ready()
        yield broker
    finally:
        broker.stop()


def run_serve(*arguments: str) -> tuple[int, str, str]:
    """The command where it is not expected to serve."""
    return ServeProcess(*arguments).wait()
