import re
from collections.abc import Callable

import pytest

from headwater.base.ids import topic_id_from_text
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def topics(cluster: Cluster) -> Callable[..., Finished]:
    """`headwater topics` on the cluster."""

    def run(*arguments: object) -> Finished:
        return run_command("topics", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


Topics = Callable[..., Finished]


def names(topics: Topics) -> list[str]:
    return topics("list").lines


@pytest.mark.parametrize("form", ["words", "flags"])
def test_the_life_of_a_topic(cluster: Cluster, topics: Topics, form: str) -> None:
    name = cluster.new_name()
    create: tuple[object, ...] = ("create", name, "-p", 3, "-r", 1, "-c", "retention.ms=7777")
    describe: tuple[object, ...] = ("describe", name)
    alter: tuple[object, ...] = ("alter", name, "-p", 4)
    delete: tuple[object, ...] = ("delete", name)
    if form == "flags":
        counts = ("--partitions", 3, "--replication-factor", 1, "--config", "retention.ms=7777")
        create = ("--create", "--topic", name, *counts)
        describe = ("--topic", name, "--describe")
        alter = ("--alter", "--topic", name, "--partitions", 4)
        delete = ("--delete", "--topic", name)
    created = topics(*create)
    assert created == (0, f"Created topic {name}.\n", "", created.output)
    eventually(lambda: name in names(topics))
    first, *partitions = eventually(lambda: _lines_if(topics(*describe), 4))
    match = re.fullmatch(
        rf"Topic: {name}\tTopicId: (\S{{22}})\tPartitionCount: 3\tReplicationFactor: 1\t"
        r"Configs: (\S*)",
        first,
    )
    assert match is not None
    assert topic_id_from_text(match[1])
    assert "retention.ms=7777" in match[2].split(",")
    broker = cluster.broker_id
    assert partitions == [
        f"\tTopic: {name}\tPartition: {number}\tLeader: {broker}\tReplicas: {broker}\tIsr: {broker}"
        for number in range(3)
    ]
    assert topics(*alter).stdout == f"Topic {name} now has 4 partitions.\n"
    assert eventually(lambda: _lines_if(topics(*describe), 5))[0].startswith(f"Topic: {name}\t")
    fewer = topics("alter", name, "-p", 2)
    assert (fewer.exit_code, fewer.stdout) == (1, "")
    assert "2 would not be an increase." in fewer.stderr
    assert topics(*delete).stdout == f"Deleted topic {name}.\n"
    eventually(lambda: name not in names(topics))


def _lines_if(finished: Finished, count: int) -> list[str]:
    return finished.lines if len(finished.lines) == count else []


def test_creating_what_is_there(cluster: Cluster, topics: Topics) -> None:
    name = cluster.new_name()
    assert topics("create", name).exit_code == 0
    again = topics("create", name)
    assert (again.exit_code, again.stdout) == (1, "")
    assert re.fullmatch(rf"headwater: .*'{name}'.* exists.*\.\n", again.stderr)
    quiet = topics("--create", "--topic", name, "--if-not-exists")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_brokers_can_be_chosen(cluster: Cluster, topics: Topics) -> None:
    name = cluster.new_name()
    broker = cluster.broker_id
    topics("create", name, "--replica-assignment", f"{broker},{broker}")
    lines = eventually(lambda: _lines_if(topics("describe", name), 3))
    assert "PartitionCount: 2" in lines[0]
    grown = topics("alter", name, "-p", 3, "--replica-assignment", f"{broker},{broker},{broker}")
    assert grown.exit_code == 0
    refused = topics("create", cluster.new_name(), "--replica-assignment", "77")
    assert refused.exit_code == 1
    assert "77" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "bad name"), "character"),
        (("create", "good", "-r", "7"), "replicat"),
        (("create", "good", "--config", "no.such=1"), "no.such"),
        (("describe", "absent"), "There is no topic 'absent', nor one that matches it."),
        (("alter", "absent", "-p", "2"), "There is no topic 'absent', nor one that matches it."),
        (("delete", "absent"), "There is no topic 'absent', nor one that matches it."),
        (("describe", "--topic-id", "A" * 22), f"There is no topic with the id {'A' * 22}."),
    ],
)
def test_a_failure_is_one_sentence(
    topics: Topics, arguments: tuple[str, ...], sentence: str
) -> None:
    failed = topics(*arguments)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("headwater: ")
    assert failed.stderr.count("\n") == 1
    assert sentence in failed.stderr


@pytest.mark.parametrize("action", [("alter", "-p", "2"), ("delete",), ("describe",)])
def test_what_is_not_there_may_be_no_error(topics: Topics, action: tuple[str, ...]) -> None:
    finished = topics(action[0], "absent", *action[1:], "--if-exists")
    assert (finished.exit_code, finished.stdout, finished.stderr) == (0, "", "")


def test_patterns_choose_topics(cluster: Cluster, topics: Topics) -> None:
    stem = cluster.new_name("pattern")
    for suffix in ("a.b", "a-b", "c"):
        topics("create", f"{stem}-{suffix}")
    eventually(lambda: len(topics("list", f"{stem}.*").lines) == 3)
    assert topics("--list", "--topic", f"{stem}-a.*").lines == [f"{stem}-a-b", f"{stem}-a.b"]
    # A name that is there means itself, even if its dot would match more.
    assert topics("delete", f"{stem}-a.b").lines == [f"Deleted topic {stem}-a.b."]
    assert len(topics("delete", f"{stem}-.*").lines) == 2


def test_a_topic_is_described_by_its_id(cluster: Cluster, topics: Topics) -> None:
    name = cluster.new_name()
    topics("create", name)
    first, _ = eventually(lambda: _lines_if(topics("describe", name), 2))
    topic_id = first.split("\t")[1].removeprefix("TopicId: ")
    assert topics("--describe", "--topic-id", topic_id).lines[0] == first
    wrong = topics("describe", "--topic-id", "short")
    assert (wrong.exit_code, "is not a topic id" in wrong.stderr) == (2, True)


def test_only_what_is_in_trouble(cluster: Cluster, topics: Topics) -> None:
    name = cluster.new_name()
    topics("create", name, "-p", 2, "--config", "min.insync.replicas=1")
    eventually(lambda: _lines_if(topics("describe", name), 3))
    for option in (
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
    ):
        assert topics("--describe", "--topic", name, option).stdout == ""
    at_minimum = topics("describe", name, "--at-min-isr-partitions")
    assert [line.split("\t")[2] for line in at_minimum.lines] == ["Partition: 0", "Partition: 1"]
    overridden = topics("describe", name, "--topics-with-overrides")
    assert len(overridden.lines) == 1
    both = topics("describe", name, "--at-min-isr-partitions", "--unavailable-partitions")
    assert both.exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("create",),
        ("delete",),
        ("alter", "x"),
        ("create", "x", "--topic", "x"),
        ("create", "x", "-p", "0"),
        ("create", "x", "--replica-assignment", "a:b"),
        ("create", "x", "--replica-assignment", "1", "-p", "1"),
        ("create", "x", "--config", "novalue"),
        ("describe", "x("),
        ("--topic", "x"),
        ("--create", "--list", "--topic", "x"),
        ("frobnicate",),
    ],
)
def test_a_senseless_command_line_exits_with_2(topics: Topics, arguments: tuple[str, ...]) -> None:
    finished = topics(*arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")
    sentence, hint = finished.stderr.splitlines()
    assert sentence.startswith("headwater: ") and sentence.endswith((".", "?"))
    assert hint.startswith("Try 'headwater topics") and hint.endswith(" --help'.")


def test_a_cluster_that_is_not_there() -> None:
    finished = run_command("topics", "list", "-b", NOWHERE)
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert finished.stderr == f"headwater: Cannot connect to {NOWHERE}: Connection refused.\n"


def test_the_environment_may_name_the_cluster(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_BOOTSTRAP_SERVER", cluster.bootstrap)
    assert run_command("topics", "list").exit_code == 0
    assert run_command("topics", "list", "-b", NOWHERE).exit_code == 1


@pytest.mark.kafka
@pytest.mark.full
def test_the_lines_are_those_of_kafkas_own_tool(cluster: Cluster, topics: Topics) -> None:
    name = cluster.new_name()
    topics("create", name, "-p", 2, "--config", "retention.ms=5")
    theirs = cluster.run_tool("topics", "--describe", "--topic", name).splitlines()
    without_elr = [re.sub(r"\tElr: \tLastKnownElr: $", "", line) for line in theirs]
    ours = topics("describe", name).lines
    # They list settings in no order.
    assert sorted(ours[0].split("\t")[:4]) == sorted(without_elr[0].split("\t")[:4])
    assert set(_configs(ours[0])) == set(_configs(without_elr[0]))
    assert ours[1:] == without_elr[1:]


def _configs(line: str) -> list[str]:
    return line.partition("Configs: ")[2].split(",")
