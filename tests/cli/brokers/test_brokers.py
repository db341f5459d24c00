"""`headwater brokers`: a cluster that grows and shrinks, told before it moves anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.brokers.serve_process import serving
from tests.support.command import Finished, run_command

_RECORDS = 200


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Four brokers: a topic on the first two of them, with two replicas and records."""
    data = tmp_path_factory.mktemp("brokers") / "data"
    with serving(data, "--brokers", "4", "--set", "acks.all.flush=off") as cluster:
        where = ("-b", cluster.address)
        assignment = ",".join(["0:1", "1:0"] * 4)
        made = run_command(
            "topics", "--create", "--topic", "orders", "--replica-assignment", assignment, *where
        )
        assert made.exit_code == 0, made.stderr
        lines = b"".join(b"%d\n" % number for number in range(_RECORDS))
        written = run_command("produce", "orders", *where, input=lines)
        assert written.exit_code == 0, written.stderr
        yield cluster.address


def _brokers(bootstrap: str, *arguments: object) -> Finished:
    return run_command("brokers", *arguments, "-b", bootstrap)


def _replicas(bootstrap: str) -> dict[int, int]:
    rows = map(json.loads, _brokers(bootstrap, "list", "--json").lines)
    return {row["broker"]: row["replicas"] for row in rows}


def _records(bootstrap: str) -> list[str]:
    read = run_command(
        "consume", "orders", "--from-beginning", "--max-messages", _RECORDS, "-b", bootstrap
    )
    return sorted(read.lines, key=int)


def test_a_cluster_grows_and_shrinks_and_loses_nothing(bootstrap: str) -> None:
    assert _replicas(bootstrap) == {0: 8, 1: 8, 2: 0, 3: 0}
    trial = _brokers(bootstrap, "balance", "--dry-run", "--watch-seconds", 0)
    assert trial.exit_code == 0
    assert "replicas spread evenly" in trial.stdout
    assert "replicas are copied" in trial.stdout
    assert _replicas(bootstrap) == {0: 8, 1: 8, 2: 0, 3: 0}

    shared = _brokers(bootstrap, "add-share", 2, "--yes", "--watch-seconds", 0)
    assert (shared.exit_code, shared.stderr) == (0, "")
    counts = _replicas(bootstrap)
    assert counts[2] == 4
    assert counts[3] == 0

    drained = _brokers(bootstrap, "drain", 0, "--yes", "--watch-seconds", 0)
    assert (drained.exit_code, drained.stderr) == (0, "")
    assert "may be stopped for good" in drained.stdout
    counts = _replicas(bootstrap)
    assert counts[0] == 0
    assert sum(counts.values()) == 16
    assert _records(bootstrap) == [str(number) for number in range(_RECORDS)]
    # What is even stays where it is.
    before = _replicas(bootstrap)
    assert _brokers(bootstrap, "drain", 0, "--yes", "--watch-seconds", 0).exit_code == 0
    assert _replicas(bootstrap) == before


def test_moves_are_throttled_unless_they_shall_not_be(bootstrap: str) -> None:
    trial = ("balance", "--dry-run", "--watch-seconds", 0)
    holders = [broker for broker, count in _replicas(bootstrap).items() if count]
    for option, told in (
        ((), "more than 50.0 MB a second"),
        (("--throttle", "1.5MB"), "more than 1.5 MB a second"),
        (("--throttle", "none"), "Nothing throttles the moves"),
    ):
        plan = _brokers(bootstrap, "drain", holders[0], "--watch-seconds", 0, *option)
        assert told in plan.stdout
    refused = _brokers(bootstrap, *trial, "--throttle", "much")
    assert refused.exit_code == 2
    assert "'much' is no rate" in refused.stderr


def _make_large(bootstrap: str, *replicas: int) -> None:
    """A topic of one partition, and more in it than a fetch brings."""
    where = ("-b", bootstrap)
    placed = ("--replica-assignment", ":".join(map(str, replicas)))
    made = run_command("topics", "--create", "--topic", "large", *placed, *where)
    assert made.exit_code == 0, made.stderr
    lines = b"".join(b"%d" % number * 2_000 + b"\n" for number in range(1_000, 1_600))
    assert run_command("produce", "large", *where, input=lines).exit_code == 0


def _delete(bootstrap: str, *topics: str) -> None:
    for topic in topics:
        assert run_command("topics", "--delete", "--topic", topic, "-b", bootstrap).exit_code == 0


def _moving(bootstrap: str) -> list[str]:
    status = run_command("reassign", "status", "--json", "-b", bootstrap)
    return [json.loads(line)["topic"] for line in status.lines]


@contextmanager
def _slowly_drained(bootstrap: str, broker_id: int) -> Iterator[subprocess.Popen[str]]:
    """Somebody drains a broker, which takes until it is let go faster; the large topic moves."""
    command = [sys.executable, "-m", "headwater", "brokers", "drain", str(broker_id), "--yes"]
    command += ["--watch-seconds", "0", "--throttle", "1kB", "-b", bootstrap]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as drain:
        try:
            while _moving(bootstrap) != ["large"]:
                assert drain.poll() is None, drain.communicate()
            yield drain
        finally:
            drain.kill()


def test_a_drain_whose_moves_were_cancelled_does_not_say_that_it_is_done(bootstrap: str) -> None:
    _make_large(bootstrap, 0)
    with _slowly_drained(bootstrap, 0) as drain:
        assert run_command("reassign", "cancel", "-b", bootstrap).exit_code == 0
        told, errors = drain.communicate(timeout=60)
    assert drain.returncode == 1
    assert "1 move was cancelled meanwhile, or turned elsewhere: large-0." in errors
    assert "stopped for good" not in told
    assert _replicas(bootstrap)[0] > 0
    _delete(bootstrap, "large")


def test_what_moves_lacks_nothing(bootstrap: str) -> None:
    _make_large(bootstrap, 0)
    where = ("-b", bootstrap)
    with _slowly_drained(bootstrap, 0):
        short = ("topics", "--describe", "--under-replicated-partitions", *where)
        assert run_command(*short).stdout == ""
        (large,) = run_command("topics", "--describe", "--topic", "large", *where).lines[1:]
        assert large.endswith("\tRemoving Replicas: 0")
        status = run_command("cluster", "status", *where)
        assert status.exit_code == 0
        assert status.lines[-1].startswith("All is in sync that stays; 1 partition on the move")
        told = _brokers(bootstrap, "restart-check", 0)
        assert "no other replica is in sync (large-0)" in told.stdout
        assert "short of replicas" not in told.stdout
        assert run_command("reassign", "cancel", *where).exit_code == 0
    _delete(bootstrap, "large")


def test_a_drain_takes_along_what_is_created_meanwhile(bootstrap: str) -> None:
    _make_large(bootstrap, 0)
    where = ("-b", bootstrap)
    with _slowly_drained(bootstrap, 0) as drain:
        late = ("topics", "--create", "--topic", "late", "--replica-assignment", 0)
        assert run_command(*late, *where).exit_code == 0
        assert run_command("reassign", "throttle", "none", *where).exit_code == 0
        told, errors = drain.communicate(timeout=60)
    assert (drain.returncode, errors) == (0, "")
    assert "Meanwhile broker 0 was given 1 new partition." in told
    assert told.splitlines()[-1].endswith("may be stopped for good.")
    assert _replicas(bootstrap)[0] == 0
    _delete(bootstrap, "large", "late")


def test_what_can_go_nowhere_else_is_named(bootstrap: str) -> None:
    _make_large(bootstrap, 0, 1, 2, 3)
    before = _replicas(bootstrap)
    refused = _brokers(bootstrap, "drain", 1, "--yes", "--watch-seconds", 0)
    assert refused.exit_code == 1
    assert "1 partition of it (large-0) can go to no other broker" in refused.stderr
    assert _replicas(bootstrap) == before
    _delete(bootstrap, "large")


def test_a_throttle_is_shown_and_changed_while_it_moves(bootstrap: str, tmp_path: Path) -> None:
    where = ("-b", bootstrap)
    _make_large(bootstrap, 0)
    moves = tmp_path / "moves.json"
    rows = [{"topic": "large", "partition": 0, "replicas": [1]}]
    moves.write_text(json.dumps({"version": 1, "partitions": rows}))
    begun = run_command(
        *("reassign", "execute", "--reassignment-json-file", moves),
        *("--throttle", "1kB", "--no-wait", *where),
    )
    assert begun.exit_code == 0, begun.stderr
    for rate, told in ((None, 1_000), ("2kB", 2_000)):
        if rate is not None:
            changed = run_command("reassign", "throttle", rate, *where)
            assert changed.lines[-1].split()[:3] == ["large", "0", "throttled"]
        (row,) = map(json.loads, run_command("reassign", "status", "--json", *where).lines)
        assert (row["adding"], row["throttle"]) == ([1], told)
    assert "2.0 kB/s" in run_command("reassign", "status", *where).stdout.replace("KB", "kB")
    assert run_command("reassign", "throttle", "none", *where).exit_code == 0
    while run_command("reassign", "status", "--json", *where).lines:
        pass
    idle = run_command("reassign", "throttle", "5MB", *where)
    assert idle.lines == ["No partition is being reassigned."]
    assert run_command("topics", "--delete", "--topic", "large", *where).exit_code == 0


def test_nothing_moves_without_a_yes(bootstrap: str) -> None:
    before = _replicas(bootstrap)
    busiest = max(before, key=lambda each: before[each])
    asked = _brokers(bootstrap, "drain", busiest, "--watch-seconds", 0)
    assert asked.exit_code == 2
    assert "give --yes" in asked.stderr
    assert _replicas(bootstrap) == before


def test_a_broker_that_is_not_there(bootstrap: str) -> None:
    for command in ("drain", "add-share"):
        refused = _brokers(bootstrap, command, 9, "--yes", "--watch-seconds", 0)
        assert refused.exit_code == 1
        assert "broker 9; the cluster has 0, 1, 2, 3" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert _brokers(bootstrap, "restart-check", 9).exit_code == 1


def test_a_restart_that_would_hurt_is_told(bootstrap: str) -> None:
    assert _brokers(bootstrap, "restart-check", 2).exit_code == 0
    where = ("-b", bootstrap)
    made = run_command(
        "topics", "--create", "--topic", "alone", "--replica-assignment", "2", *where
    )
    assert made.exit_code == 0
    told = _brokers(bootstrap, "restart-check", 2)
    assert told.exit_code == 1
    assert "would take 1 partition away" in told.stdout
