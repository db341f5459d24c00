import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command

Command = Callable[..., Finished]


@pytest.fixture
def get_offsets(cluster: Cluster) -> Command:
    def run(*arguments: object) -> Finished:
        return run_command("get-offsets", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


@pytest.fixture
def delete_records(cluster: Cluster) -> Command:
    def run(*arguments: object) -> Finished:
        return run_command("delete-records", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


def test_offsets_by_time(topic: str, get_offsets: Command) -> None:
    latest = [f"{topic}:0:0", f"{topic}:1:1", f"{topic}:2:2"]
    assert get_offsets(topic).lines == latest
    assert get_offsets("--topic", topic, "--time", -1).lines == latest
    for time_ in ("earliest", -2):
        found = get_offsets(topic, "--time", time_).lines
        assert found == [f"{topic}:{partition}:0" for partition in range(3)]
    # An empty partition has no newest record, and nothing is from the future.
    assert [line.split(":")[1] for line in get_offsets(topic, "--time", -3).lines] == ["1", "2"]
    assert get_offsets(topic, "--time", 1).lines == [f"{topic}:1:0", f"{topic}:2:0"]
    future_ms = int(time.time() * 1000) + 3_600_000
    late = get_offsets(topic, "--time", future_ms)
    assert (late.exit_code, late.stdout) == (0, "")


def test_partitions_are_chosen(topic: str, get_offsets: Command) -> None:
    assert get_offsets(topic, "--partitions", "0,2").lines == [f"{topic}:0:0", f"{topic}:2:2"]
    assert get_offsets("--topic-partitions", f"{topic}:1-").lines == [
        f"{topic}:1:1",
        f"{topic}:2:2",
    ]
    assert set(get_offsets(topic).lines) <= set(get_offsets("--exclude-internal-topics").lines)
    nothing = get_offsets("absent")
    assert (nothing.exit_code, nothing.stderr) == (
        1,
        "headwater: No partition matches 'absent'.\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", "--time", "noon"),
        ("x", "--time", "-9"),
        ("x", "--topic-partitions", "y"),
        ("x", "--partitions", "a"),
        ("--topic-partitions", "x:y"),
        ("x(",),
    ],
)
def test_get_offsets_with_a_senseless_command_line(arguments: tuple[str, ...]) -> None:
    finished = run_command("get-offsets", *arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")


def test_records_are_deleted(topic: str, get_offsets: Command, delete_records: Command) -> None:
    deleted = delete_records(topic, "--partition", 2, "--offset", 1)
    assert (deleted.exit_code, deleted.stderr) == (0, "")
    assert deleted.lines == [
        "Executing records delete operation",
        "Records delete operation completed:",
        f"partition: {topic}-2\tlow_watermark: 1",
    ]
    assert get_offsets(topic, "--time", "earliest", "--partitions", 2).lines == [f"{topic}:2:1"]
    assert (
        f"{topic}-2\tlow_watermark: 2"
        in delete_records("--topic", topic, "--partition", 2, "--offset", -1).stdout
    )


def test_several_partitions_by_a_file(topic: str, delete_records: Command, tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    rows = [
        {"topic": topic, "partition": 1, "offset": 1},
        {"topic": topic, "partition": 2, "offset": 99},
        {"topic": "absent", "partition": 0, "offset": 0},
    ]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    finished = delete_records("--offset-json-file", path)
    assert finished.exit_code == 1
    assert finished.lines[2:] == [f"partition: {topic}-1\tlow_watermark: 1"]
    first, second = finished.stderr.splitlines()
    assert first.startswith(f"headwater: {topic}-2: The offset is outside the range")
    assert second == "headwater: There is no topic 'absent'."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("nonsense", "is not JSON"),
        ("[]", "should be an object with version 1"),
        ('{"version": 2}', "should be an object with version 1"),
        ('{"version": 1}', "names no partition"),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "without topic, partition and"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "offset": 1},'
            ' {"topic": "a", "partition": 0, "offset": 2}]}',
            "names a-0 twice",
        ),
    ],
)
def test_a_file_at_fault_is_told(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(content)
    finished = run_command("delete-records", "--offset-json-file", path)
    assert (finished.exit_code, finished.stdout) == (2, "")
    assert reason in finished.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    finished = run_command("delete-records", "--offset-json-file", tmp_path / "absent")
    assert (finished.exit_code, finished.stderr) == (
        1,
        f"headwater: {tmp_path}/absent: No such file or directory.\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("x", "--partition", "0"),
        ("x", "--offset", "0"),
        ("x", "--partition", "0", "--offset", "0", "--offset-json-file", "f"),
        ("x", "--partition", "0", "--offset", "-2"),
    ],
)
def test_delete_records_with_a_senseless_command_line(arguments: tuple[str, ...]) -> None:
    finished = run_command("delete-records", *arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")


@pytest.mark.kafka
@pytest.mark.full
def test_the_lines_are_those_of_kafkas_own_tools(
    cluster: Cluster, topic: str, get_offsets: Command, delete_records: Command, tmp_path: Path
) -> None:
    for time_ in ("latest", "earliest", "-3", "1"):
        options = ("--topic", topic, "--time", time_)
        assert get_offsets(*options).stdout == cluster.run_tool("get-offsets", *options)
    path = tmp_path / "offsets.json"
    rows = [{"topic": topic, "partition": 2, "offset": 1}]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    theirs = cluster.run_tool("delete-records", "--offset-json-file", str(path))
    assert delete_records("--offset-json-file", path).stdout == theirs
