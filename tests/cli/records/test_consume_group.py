"""`headwater consume --group`: a member of a group that commits what it has printed."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually

TIMEOUT_S = 60.0


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """One partition with the records 0 to 9."""
    name = cluster.new_name("grouped")
    where = ("-b", cluster.bootstrap)
    assert run_command("topics", "create", name, *where).exit_code == 0
    eventually(lambda: run_command("get-offsets", name, *where).exit_code == 0)
    lines = b"".join(b"%d\n" % number for number in range(10))
    assert run_command("produce", name, *where, input=lines).exit_code == 0
    return name


def consume(cluster: Cluster, *arguments: object) -> Finished:
    return run_command("consume", *arguments, "-b", cluster.bootstrap)


def committed(cluster: Cluster, group: str) -> str:
    """Where the group is in its one partition; a dash if nowhere."""
    described = run_command("groups", "describe", group, "-b", cluster.bootstrap).lines
    return described[1].split()[3] if len(described) > 1 else "-"


def test_a_group_goes_on_where_it_was(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    first = consume(cluster, topic, "--group", group, "--from-beginning", "--max-messages", 3)
    assert (first.exit_code, first.lines) == (0, ["0", "1", "2"])
    assert committed(cluster, group) == "3"
    # The beginning is for groups that have not begun; and Kafka's way to name the group.
    options = ("--from-beginning", "--consumer-property", f"group.id={group}")
    assert consume(cluster, "--topic", topic, *options, "-n", 2).lines == ["3", "4"]
    assert committed(cluster, group) == "5"
    rest = consume(cluster, "--include", f"{topic[:-1]}.", "--group", group, "-n", 5)
    assert rest.lines == ["5", "6", "7", "8", "9"]
    assert committed(cluster, group) == "10"


def test_the_other_protocol(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    options = ("--group", group, "--consumer-property", "group.protocol=consumer")
    assert consume(cluster, topic, *options, "--from-beginning", "-n", 4).exit_code == 0
    assert committed(cluster, group) == "4"


def test_without_commits_a_group_stays_where_it_is(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    options = ("--group", group, "--from-beginning")
    consume(cluster, topic, *options, "-n", 2)
    assert consume(cluster, topic, *options, "-n", 3, "--no-commit").lines == ["2", "3", "4"]
    assert committed(cluster, group) == "2"


def test_a_new_group_begins_at_the_end(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    # The time in which nothing comes begins when the group has let the member in.
    finished = consume(cluster, topic, "--group", group, "--timeout-ms", 50)
    assert (finished.exit_code, finished.stdout) == (0, "")
    assert finished.stderr == "Processed a total of 0 messages\n"
    where = ("-b", cluster.bootstrap)
    assert run_command("produce", topic, *where, input=b"later\n").exit_code == 0
    assert committed(cluster, group) in ("-", "10")


def started(cluster: Cluster, *arguments: str, stdout: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headwater", "consume", *arguments, "-b", cluster.bootstrap],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_member_commits_what_it_printed(
    number: signal.Signals, cluster: Cluster, topic: str
) -> None:
    group = cluster.new_name("group")
    options = (topic, "--group", group, "--from-beginning")
    process = started(cluster, *options, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(10)] == [f"{n}\n" for n in range(10)]
        process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, errors) == (0, "Processed a total of 10 messages\n")
    assert committed(cluster, group) == "10"


def test_what_nobody_read_is_not_committed(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        options = (topic, "--group", group, "--from-beginning")
        process = started(cluster, *options, stdout=writing)
    finally:
        os.close(writing)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, errors) == (1, "")
    assert committed(cluster, group) in ("-", "0")


@pytest.mark.kafka
@pytest.mark.full
def test_kafkas_own_console_consumer_agrees(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    options = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages")
    for start in (0, 6):
        theirs = cluster.run_tool("console-consumer", *options, "3").splitlines()
        assert theirs == [str(number) for number in range(start, start + 3)]
        assert committed(cluster, group) == str(start + 3)
        if start == 0:
            assert consume(cluster, *options, 3).lines == ["3", "4", "5"]
            assert committed(cluster, group) == "6"
