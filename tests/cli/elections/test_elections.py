"""`headwater elect-leaders`: which partitions, what came of it, and the exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command

Elect = Callable[..., Finished]


@pytest.fixture
def elect(cluster: Cluster) -> Elect:
    """`headwater elect-leaders` on the cluster."""

    def run(*arguments: object) -> Finished:
        return run_command("elect-leaders", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


def test_all_is_well(elect: Elect, topic: str) -> None:
    done = elect("--all-topic-partitions", "--election-type", "PREFERRED")
    assert (done.exit_code, done.lines) == (0, ["No partition needs an election."])
    assert elect("--all-topic-partitions", "--json").stdout == ""
    one = elect("--topic", topic, "--partition", 1, "--election-type", "unclean")
    assert one.exit_code == 0
    assert [line.split() for line in one.lines] == [
        ["TOPIC", "PARTITION", "OUTCOME", "REASON"],
        [topic, "1", "not", "needed", "-"],
    ]
    whole = elect(topic, "--json")
    assert [json.loads(line) for line in whole.lines] == [
        {"topic": topic, "partition": number, "outcome": "not needed", "reason": None}
        for number in range(3)
    ]


def test_one_that_fails_fails_the_command(elect: Elect, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "partitions.json"
    rows = [{"topic": topic, "partition": 0}, {"topic": "absent", "partition": 7}]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    done = elect("--path-to-json-file", file, "--election-type", "preferred", "--json")
    assert done.exit_code == 1
    failed, fine = map(json.loads, done.lines)
    assert (failed["topic"], failed["partition"], failed["outcome"]) == ("absent", 7, "failed")
    assert failed["reason"].startswith("UNKNOWN_TOPIC_OR_PARTITION: ")
    assert (fine["topic"], fine["outcome"]) == (topic, "not needed")


def test_a_topic_that_is_not_there(elect: Elect) -> None:
    done = elect("absent")
    assert (done.exit_code, done.stderr) == (1, "headwater: There is no topic 'absent'.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("orders", "--all-topic-partitions"),
        ("orders", "--topic", "orders"),
        ("--partition", "0"),
        ("--all-topic-partitions", "--partition", "0"),
        ("orders", "--partition", "-1"),
        ("orders", "--election-type", "free"),
    ],
)
def test_command_lines_that_make_no_sense(arguments: tuple[str, ...]) -> None:
    assert run_command("elect-leaders", *arguments).exit_code == 2


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"partitions": []}',
        '{"partitions": [{"topic": "a"}]}',
        '{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}',
    ],
)
def test_files_that_make_no_sense(content: str, tmp_path: Path) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(content)
    done = run_command("elect-leaders", "--path-to-json-file", file)
    assert done.exit_code == 2
    # The box may break the line within the file's name.
    assert "--path-to-json-file" in done.stderr
