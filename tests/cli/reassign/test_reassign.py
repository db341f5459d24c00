"""`headwater reassign`: what is begun, what is shown, and the exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command

Reassign = Callable[..., Finished]


@pytest.fixture
def reassign(cluster: Cluster) -> Reassign:
    """`headwater reassign` on the cluster."""

    def run(*arguments: object) -> Finished:
        return run_command("reassign", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


def _moves(path: Path, *rows: tuple[str, int, list[int]]) -> Path:
    partitions = [
        {"topic": topic, "partition": number, "replicas": replicas, "log_dirs": ["any"]}
        for topic, number, replicas in rows
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


def test_nothing_is_under_way(reassign: Reassign, topic: str, tmp_path: Path) -> None:
    for arguments in (("status",), ("cancel",)):
        done = reassign(*arguments)
        assert (done.exit_code, done.lines) == (0, ["No partition is being reassigned."])
        assert reassign(*arguments, "--json").stdout == ""
    file = _moves(tmp_path / "moves.json", (topic, 0, [1]))
    assert reassign("status", "--reassignment-json-file", file).exit_code == 0
    done = reassign("cancel", "--reassignment-json-file", file, "--json")
    assert done.exit_code == 1
    (row,) = map(json.loads, done.lines)
    assert row["reason"].startswith("NO_REASSIGNMENT_IN_PROGRESS: ")


def test_what_cannot_be_fails_the_command(reassign: Reassign, topic: str, tmp_path: Path) -> None:
    file = _moves(tmp_path / "moves.json", (topic, 0, [77]), ("absent", 0, [1]))
    done = reassign("execute", "--reassignment-json-file", file, "--json")
    assert done.exit_code == 1
    codes = [json.loads(line)["reason"].split(":")[0] for line in done.lines]
    assert sorted(codes) == ["INVALID_REPLICA_ASSIGNMENT", "UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"version": 2, "partitions": []}',
        '{"partitions": []}',
        '{"partitions": [{"topic": "t", "partition": 0}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}',
        '{"partitions": [{"topic": "t", "partition": "0", "replicas": [1]}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
        ' {"topic": "t", "partition": 0, "replicas": [2]}]}',
    ],
)
def test_files_that_make_no_sense(content: str, tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text(content)
    for command in ("execute", "status", "cancel"):
        done = run_command("reassign", command, "--reassignment-json-file", file)
        assert done.exit_code == 2
        assert "Traceback" not in done.stderr


def test_execute_needs_a_file() -> None:
    assert run_command("reassign", "execute").exit_code == 2


def test_a_throttle_goes_with_a_move_where_brokers_know_of_it(
    reassign: Reassign, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    file = _moves(tmp_path / "moves.json", (topic, 0, [cluster.broker_id]))
    done = reassign("execute", "--reassignment-json-file", file, "--throttle", "5MB")
    changed = reassign("throttle", "none")
    if cluster.kind == "headwater":
        assert (done.exit_code, changed.exit_code) == (0, 0)
        assert changed.lines == ["No partition is being reassigned."]
    else:
        assert (done.exit_code, changed.exit_code) == (1, 1)
        assert "do not take a throttle with a reassignment" in done.stderr
        assert "Traceback" not in done.stderr
