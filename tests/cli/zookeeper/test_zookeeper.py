import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.support.brokers.zookeeper import require_zookeeper
from tests.support.waiting import eventually

READY = re.compile(r"^ZooKeeper is ready at (\S+) \(started in [\d.]+ s\)$", re.M)
LIMIT_S = 120.0

Start = Callable[..., "Run"]


class Run:
    """One `headwater zookeeper`."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "zookeeper", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | (environment or {}),
        )
        self.output = ""

    def wait_ready(self) -> list[str]:
        """The addresses of the servers."""
        deadline = time.monotonic() + LIMIT_S
        stdout = self.process.stdout
        assert stdout is not None
        while (ready := READY.search(self.output)) is None:
            assert time.monotonic() < deadline, f"not ready in time: {self.output}"
            if select.select([stdout], [], [], 0.5)[0]:
                data = os.read(stdout.fileno(), 1 << 16)
                assert data, f"it ended: {self.output}{self.process.communicate()[1].decode()}"
                self.output += data.decode()
        return ready[1].split(",")

    def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        if number is not None:
            self.process.send_signal(number)
        rest, errors = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, self.output + rest.decode(), errors.decode()


@pytest.fixture
def start() -> Iterator[Start]:
    require_zookeeper()
    runs: list[Run] = []

    def begin(*arguments: str, environment: dict[str, str] | None = None) -> Run:
        runs.append(Run(*arguments, environment=environment))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
        run.process.communicate()


def _client(addresses: list[str]) -> KazooClient:
    client = KazooClient(hosts=",".join(addresses))
    client.start(timeout=LIMIT_S)
    return client


def _serves(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def test_one_server_keeps_its_data_over_a_restart(start: Start, tmp_path: Path) -> None:
    arguments = ("--data-dir", str(tmp_path / "zk"), "--port", "0")
    first = start(*arguments)
    client = _client(first.wait_ready())
    client.create("/kept", b"value")
    client.stop()
    client.close()
    code, output, errors = first.end(signal.SIGTERM)
    assert (code, errors) == (0, "")
    assert output.endswith("ZooKeeper is stopping.\nZooKeeper has stopped.\n")
    second = start(*arguments)
    addresses = second.wait_ready()
    client = _client(addresses)
    assert client.get("/kept")[0] == b"value"
    client.stop()
    client.close()
    # Another one in the same directory would spoil the data.
    code, _, errors = start(*arguments).end()
    assert (code, errors.count("\n")) == (1, 1)
    assert "is in use by another `headwater zookeeper`" in errors
    # Killed without a chance to end anything, it leaves nothing behind.
    second.process.kill()
    second.end()
    eventually(lambda: not _serves(addresses[0]))


def test_an_ensemble_outlives_a_server_and_ends_when_too_few_are_left(
    start: Start, tmp_path: Path
) -> None:
    run = start("--data-dir", str(tmp_path / "zk"), "--port", "0", "--ensemble", "3")
    addresses = run.wait_ready()
    assert len(set(addresses)) == 3
    pids = _children(run.process.pid)
    assert len(pids) == 3
    os.kill(pids[0], signal.SIGKILL)
    client = _client(addresses)
    client.create("/a", b"")
    client.stop()
    client.close()
    assert run.process.poll() is None
    os.kill(pids[1], signal.SIGKILL)
    code, output, errors = run.end()
    assert code == 1
    assert errors == "headwater: Too few ZooKeeper servers are left to serve.\n"
    assert output.count("  ended       the server at 127.0.0.1:") == 2
    code, _, errors = start("--data-dir", str(tmp_path / "zk")).end()
    assert code == 1
    assert "belongs to 3 servers, not 1: start it with --ensemble 3" in errors


def _children(pid: int) -> list[int]:
    """The processes that a process has started, whichever of its threads did."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return sorted(found)


def test_ctrl_c_while_it_starts_ends_it(start: Start, tmp_path: Path) -> None:
    run = start("--data-dir", str(tmp_path / "zk"), "--port", "0")
    eventually(lambda: (tmp_path / "zk" / "zoo.cfg").exists())
    code, output, errors = run.end(signal.SIGINT)
    assert (code, errors) == (0, "")
    assert "ZooKeeper is ready" not in output


def test_what_is_wrong_is_one_sentence(start: Start, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        (tmp_path / "file").touch()
        mistakes = {
            f"The port {port} of 127.0.0.1 is in use": start(
                "--data-dir", str(tmp_path / "a"), "--port", port
            ),
            "cannot be used: Not a directory.": start("--data-dir", str(tmp_path / "file" / "x")),
            "there is no java in JAVA_HOME or on the PATH": start(
                *("--data-dir", str(tmp_path / "b"), "--port", "0"),
                environment={"PATH": "/nowhere", "JAVA_HOME": ""},
            ),
        }
        for sentence, run in mistakes.items():
            code, _, errors = run.end()
            assert (code, errors.count("\n")) == (1, 1)
            assert errors.startswith("headwater: ") and sentence in errors
