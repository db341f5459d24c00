"""A Headwater broker in a process of its own, as an operator would run it.

    with BrokerProcess(directory, settings={"num.partitions": "3"}) as broker:
        client = Producer(broker.bootstrap)
        broker.kill()
        broker.start()

It listens on one port for its whole life, restarts included, and keeps its data below `directory`.
`start` returns when the broker has answered a request. Whatever it prints goes to a file, whose end
is part of any error. The process ends with this one, however this one ends.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.java.processes import forget_process, kill_process, start_process

HOST = "127.0.0.1"
POLL_INTERVAL_S = 0.01
# Below the ports that systems give to outgoing connections: a client that keeps on dialling while
# the broker is down could otherwise be given the very port and meet itself.
PORTS = range(20_000, 32_000)


class BrokerProcessError(Exception):
    """The broker did not start or stop as it should; the message ends with its output."""


class BrokerProcess:
    """One `headwater serve`. See the module's text."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        broker_id: int = 0,
        data_dir: Path | None = None,
        port: int | None = None,
        host: str = HOST,
        arguments: Sequence[str] = (),
        command_prefix: Sequence[str] = (),
        start_timeout_s: float = 30.0,
    ) -> None:
        """`arguments` are more of `headwater serve`; `command_prefix` is a command, with its full
        path, that runs the broker's, in a network namespace say."""
        self.directory = directory
        self.data_dir = data_dir or directory / "data"
        self.settings = dict(settings or {})
        self.broker_id = broker_id
        self.output = directory / "output.txt"
        self.host = host
        self.port = port or free_port()
        self._arguments = tuple(arguments)
        self._command_prefix = tuple(command_prefix)
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._started().pid

    def start(self) -> None:
        """Start it and return once it answers."""
        self.launch()
        try:
            wait_until(
                lambda: not self.is_running or answers(self.port, self.host),
                "the broker answers",
                self._start_timeout_s,
            )
            if not self.is_running:
                raise BrokerProcessError(f"The broker ended while starting:\n{self.tail()}")
        except TimeoutError:
            self.kill()
            raise BrokerProcessError(f"The broker did not start:\n{self.tail()}") from None
        except BrokerProcessError:
            self.kill()
            raise

    def launch(self) -> None:
        """Start it and do not wait, for tests of starts that fail."""
        if self._process is not None:
            raise BrokerProcessError("the broker was started already")
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [*self._command_prefix, sys.executable, "-m", "headwater", "serve"]
        command += ["--listen", self.bootstrap, "--data-dir", str(self.data_dir)]
        command += ["--broker-id", str(self.broker_id), *self._arguments]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        with self.output.open("ab") as output:
            self._process = start_process(command, stdout=output, stderr=output)

    def stop(self, timeout_s: float = 30.0) -> int:
        """Ask it to shut down and wait until it has; its exit code."""
        process = self._started()
        process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = 30.0) -> int:
        """Wait until it has ended by itself; its exit code."""
        process = self._started()
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerProcessError(
                f"The broker did not stop within {timeout_s} s:\n{self.tail()}"
            ) from None
        forget_process(process)
        self._process = None
        return code

    def kill(self) -> None:
        """End it at once, as a crash would. No error if it has ended already."""
        if self._process is not None:
            kill_process(self._process)
            self._process = None

    def restart(self) -> None:
        """Stop it in order and start it again on the same data and port."""
        code = self.stop()
        if code != 0:
            raise BrokerProcessError(f"The broker ended with exit code {code}:\n{self.tail()}")
        self.start()

    def tail(self, lines: int = 40) -> str:
        """The last lines that it printed."""
        text = self.output.read_text(errors="replace") if self.output.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def resident_bytes(self) -> int:
        """Its memory, as the kernel counts it (VmRSS)."""
        return self._status_bytes("VmRSS")

    def peak_resident_bytes(self) -> int:
        """The most memory that it has had at once (VmHWM)."""
        return self._status_bytes("VmHWM")

    def _status_bytes(self, name: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith(f"{name}:")]
        return int(line.split()[1]) * 1024

    def cpu_s(self) -> float:
        """The processor time that it has used, in user mode and in the kernel."""
        # The name in front may hold anything, but it ends with the last parenthesis.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptor_count(self) -> int:
        """How many files and sockets it holds open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and self.is_running:
            self.stop()
        else:
            self.kill()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerProcessError("the broker is not running")
        return self._process


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Look again and again until `condition` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s} s: {what}")
        time.sleep(POLL_INTERVAL_S)


def answers(port: int, host: str = HOST) -> bool:
    """Whether a broker answers an ApiVersions request there without an error."""
    correlation_id = 1
    # Key 18, version 0, correlation id, and a null client id; there is no body.
    request = struct.pack(">hhih", 18, 0, correlation_id, -1)
    try:
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (correlation_id, 0)


def free_port() -> int:
    """A port that nobody listens on."""
    for port in random.sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        return port
    raise BrokerProcessError(f"no port is free on {HOST} between {PORTS[0]} and {PORTS[-1]}")
