"""`headwater reassign execute`: in steps, throttled, ended at any time, or all at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.brokers.serve_process import serving
from tests.support.command import Finished, run_command

_COUNT = 3
_OPTION = "--reassignment-json-file"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("brokers") / "data"
    with serving(data, "--brokers", "3", "--set", "acks.all.flush=off") as cluster:
        yield cluster.address


@pytest.fixture
def topic(bootstrap: str) -> Iterator[str]:
    """Partitions that broker 0 alone has, each with more than a second's worth of 1 kB."""
    where = ("--topic", "large", "-b", bootstrap)
    placed = ("--replica-assignment", ",".join("0" * _COUNT))
    assert run_command("topics", "--create", *placed, *where).exit_code == 0
    lines = b"".join(b"%d" % number * 2_000 + b"\n" for number in range(1_000, 1_600))
    for number in range(_COUNT):
        to = ("produce", "large", "--partition", number, "-b", bootstrap)
        assert run_command(*to, input=lines).exit_code == 0
    yield "large"
    run_command("reassign", "throttle", "none", "-b", bootstrap)
    assert run_command("topics", "--delete", *where).exit_code == 0


@pytest.fixture
def moves(tmp_path: Path, topic: str) -> Path:
    """All of them go to broker 1."""
    return _write(tmp_path, *((topic, number, [1]) for number in range(_COUNT)))


def _write(directory: Path, *rows: tuple[str, int, list[int]]) -> Path:
    path = directory / "moves.json"
    partitions = [{"topic": topic, "partition": at, "replicas": on} for topic, at, on in rows]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


def _execute(bootstrap: str, moves: Path, *options: object) -> Finished:
    return run_command("reassign", "execute", _OPTION, moves, "-b", bootstrap, *options)


@contextmanager
def _executing(bootstrap: str, moves: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """It runs beside the test, and something moves."""
    command = [sys.executable, "-m", "headwater", "reassign", "execute", _OPTION, str(moves)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "-b", bootstrap, *options], stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            while not _moving(bootstrap):
                assert process.poll() is None, process.communicate()
            yield process
        finally:
            process.kill()


def _moving(bootstrap: str) -> dict[int, Any]:
    """The throttle of each partition that moves."""
    rows = run_command("reassign", "status", "--json", "-b", bootstrap).lines
    return {row["partition"]: row["throttle"] for row in map(json.loads, rows)}


def _replicas(bootstrap: str) -> list[str]:
    told = run_command("topics", "--describe", "--topic", "large", "-b", bootstrap).lines[1:]
    return [line.split("Replicas: ")[1].split("\t")[0] for line in told]


def _outcomes(done: Finished) -> list[str]:
    return [json.loads(line)["outcome"] for line in done.lines]


def test_it_ends_when_all_has_arrived(bootstrap: str, moves: Path) -> None:
    done = _execute(bootstrap, moves)
    assert (done.exit_code, done.stderr) == (0, "")
    assert _replicas(bootstrap) == ["1"] * _COUNT
    assert done.stdout.startswith("3 partitions change, 3 replicas are copied: ")
    assert "more than 50.0 MB a second" in done.lines[1]
    assert [line.split()[2] for line in done.lines[-_COUNT:]] == ["moved"] * _COUNT


def test_so_many_move_at_once(bootstrap: str, moves: Path) -> None:
    with _executing(bootstrap, moves, "--moves-per-broker", "2", "--throttle", "1kB") as process:
        time.sleep(1.5)
        assert _moving(bootstrap) == {0: 1_000, 1: 1_000}
        while process.poll() is None:
            assert run_command("reassign", "throttle", "none", "-b", bootstrap).exit_code == 0
        assert process.returncode == 0
    assert _replicas(bootstrap) == ["1"] * _COUNT


def test_who_ends_it_leaves_what_is_under_way(bootstrap: str, moves: Path) -> None:
    with _executing(bootstrap, moves, "--moves-per-broker", "1", "--throttle", "1kB") as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "1 partition of this step" in errors
    assert "2 partitions stay where they are" in errors
    assert "`headwater reassign cancel` takes it back" in errors
    assert "Traceback" not in errors
    assert _moving(bootstrap) == {0: 1_000}
    # Again, all at once: what moves keeps its throttle, unless told otherwise.
    again = _execute(bootstrap, moves, "--no-wait")
    assert again.exit_code == 0
    assert "1 partition on the move already keeps its throttle" in again.stdout
    assert _moving(bootstrap)[0] == 1_000
    assert set(_moving(bootstrap).values()) <= {1_000, 50_000_000}
    assert _execute(bootstrap, moves, "--throttle", "none").exit_code == 0
    assert _replicas(bootstrap) == ["1"] * _COUNT


def test_all_at_once(bootstrap: str, moves: Path) -> None:
    done = _execute(bootstrap, moves, "--no-wait", "--throttle", "1000", "--json")
    assert (done.exit_code, _outcomes(done)) == (0, ["begun"] * _COUNT)
    assert _moving(bootstrap) == dict.fromkeys(range(_COUNT), 1_000)


def test_one_that_is_cancelled_meanwhile_has_not_moved(bootstrap: str, moves: Path) -> None:
    with _executing(bootstrap, moves, "--moves-per-broker", "1", "--throttle", "1kB") as process:
        assert run_command("reassign", "cancel", "-b", bootstrap).exit_code == 0
        told, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "1 move was cancelled meanwhile, or turned elsewhere: large-0." in errors
    assert "moved" not in told
    assert _replicas(bootstrap) == ["0"] * _COUNT


def test_others_move_where_some_are_refused(bootstrap: str, topic: str, tmp_path: Path) -> None:
    moves = _write(tmp_path, (topic, 0, [77]), (topic, 1, [2]), (topic, 2, [1, 2]), ("no", 0, [1]))
    done = _execute(bootstrap, moves, "--json", "--disallow-replication-factor-change")
    assert done.exit_code == 1
    assert _outcomes(done) == ["refused", "moved", "refused", "refused"]
    assert _replicas(bootstrap) == ["0", "2", "0"]
