import json

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.group_tables import Command, cells, offsets_of
from tests.support.other_clients.group_members import group_member
from tests.support.waiting import eventually

OFFSET_HEADERS = [
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
]


@pytest.mark.parametrize("form", ["words", "flags"])
def test_offsets_and_lag(groups: Command, group: str, topic: str, form: str) -> None:
    words: tuple[str, ...] = ("describe", group)
    described = groups(*(words if form == "words" else ("--describe", "--group", group)))
    assert (described.exit_code, described.stderr) == (
        0,
        f"Consumer group {group!r} has no active members.\n",
    )
    assert cells(described) == [
        OFFSET_HEADERS,
        [group, topic, "1", "1", "1", "0", "-", "-", "-"],
        [group, topic, "2", "1", "2", "1", "-", "-", "-"],
    ]
    rows = [json.loads(line) for line in groups(*words, "--json").lines]
    assert rows[1] == {
        "group": group,
        "topic": topic,
        "partition": 2,
        "leader_epoch": None,
        "current_offset": 1,
        "log_end_offset": 2,
        "lag": 1,
        "consumer_id": None,
        "host": None,
        "client_id": None,
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members(cluster: Cluster, groups: Command, group: str, topic: str, protocol: str) -> None:
    settings = {"group_instance_id": "static-1", "group_protocol": protocol}
    with group_member(cluster.bootstrap, group, topic, **settings):
        described = _when_quiet(groups, group)
        rows = cells(described)
        assert rows[0] == OFFSET_HEADERS
        # All partitions are its own, and in the first one nothing was ever committed.
        assert [row[2:6] for row in rows[1:]] == [
            ["0", "-", "0", "-"],
            ["1", "1", "1", "0"],
            ["2", "1", "2", "1"],
        ]
        [identity] = {tuple(row[6:]) for row in rows[1:]}
        assert identity[2] == "tester"
        assert "127.0.0.1" in identity[1]
        members = groups("members", group)
        assert members.stdout == groups("--describe", "--members", "--group", group).stdout
        header, row = cells(members)
        assert header == [
            *("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID"),
            *("HOST", "CLIENT-ID", "#PARTITIONS"),
        ]
        assert row == [group, identity[0], "static-1", identity[1], "tester", "3"]
        [verbose] = [json.loads(line) for line in groups("members", group, "--json").lines]
        assert verbose["current_assignment"] == {topic: [0, 1, 2]}
        assert (verbose["current_epoch"] is None) == (protocol == "classic")
        header, row = cells(groups("describe", group, "--state"))
        assert header == [
            *("GROUP", "COORDINATOR", "(ID)"),
            *("ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
        ]
        assert row[1:3] == [cluster.bootstrap, f"({cluster.broker_id})"]
        assert row[4:] == ["Stable", "1"]
        refused = groups("reset-offsets", group, "--all-topics", "--to-latest", "--execute")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr == (
            f"headwater: The offsets of group {group!r} can only be reset while it has no "
            "members: it is Stable and has 1 member.\n"
        )
        refused = groups("delete", group)
        assert (refused.exit_code, refused.stdout) == (1, "")
        # The broker's own words, where it has some: Kafka has them from 4.4 on.
        assert group in refused.stderr
        assert refused.stderr.endswith(" still has members.\n")
        refused = groups("delete-offsets", group, "--topic", topic)
        assert refused.exit_code == 1
        assert "still reads that topic" in refused.stderr
        assert cells(refused)[1:] == [[topic, str(number), "Failed"] for number in range(3)]
        listed = groups("--list", "--state", "--type")
        assert [group, protocol, "Stable"] in [
            [row[0], row[1].lower(), row[2]] for row in cells(listed)
        ]


def _when_quiet(groups: Command, group: str) -> Finished:
    """The offsets of a group, once it is neither empty nor rebalancing."""
    eventually(lambda: not groups("describe", group).stderr)
    return groups("describe", group)


def test_lists_of_groups(groups: Command, group: str) -> None:
    assert group in groups("list").lines
    assert groups("--list").lines == groups("list").lines
    with_state = groups("list", "--state")
    assert cells(with_state)[0] == ["GROUP", "STATE"]
    assert [group, "Empty"] in cells(with_state)
    assert [group, "Empty"] in cells(groups("--list", "--state", "stable,EMPTY"))
    assert group not in groups("list", "--state", "Stable").stdout
    assert group in groups("list", "--type=classic").stdout
    assert group not in groups("list", "--type", "consumer").stdout
    rows = [json.loads(line) for line in groups("list", "--json").lines]
    assert group in [row["group"] for row in rows if row["state"] == "Empty"]


def test_offsets_and_groups_are_deleted(groups: Command, group: str, topic: str) -> None:
    deleted = groups("delete-offsets", group, "--topic", f"{topic}:1")
    assert (deleted.exit_code, deleted.stderr) == (0, "")
    assert cells(deleted) == [["TOPIC", "PARTITION", "STATUS"], [topic, "1", "Successful"]]
    assert offsets_of(groups, group) == {2: 1}
    assert groups("--delete", "--group", group).stdout == f"Deleted group {group}.\n"
    assert group not in groups("list").lines
    gone = groups("describe", group)
    assert (gone.exit_code, gone.stdout) == (1, "")
    assert gone.stderr == f"headwater: There is no group {group!r}.\n"
    for arguments in (("delete", group), ("delete-offsets", group, "--topic", topic)):
        again = groups(*arguments)
        assert (again.exit_code, again.stdout) == (1, "")
        assert again.stderr == f"headwater: There is no group {group!r}.\n"


def test_all_groups_at_once(groups: Command, group: str, topic: str) -> None:
    described = groups("describe", "--all-groups")
    assert described.exit_code == 0
    assert [group, topic, "2", "1", "2", "1", "-", "-", "-"] in cells(described)
    some = groups("describe", group, "nobody")
    assert some.exit_code == 1
    assert [row[0] for row in cells(some)] == ["GROUP", group, group]
    assert some.stderr.splitlines()[-1] == "headwater: There is no group 'nobody'."


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("describe", "g", "--all-groups"),
        ("describe", "g", "--members", "--state"),
        ("describe", "g", "--isolation", "serializable"),
        ("list", "--state", "Sleepy"),
        ("list", "--type", "share"),
        ("reset-offsets", "g", "--to-earliest"),
        ("reset-offsets", "g", "--topic", "t"),
        ("reset-offsets", "g", "--topic", "t", "--to-earliest", "--to-latest"),
        ("reset-offsets", "g", "--topic", "t", "--all-topics", "--to-latest"),
        ("reset-offsets", "g", "--topic", "t", "--to-latest", "--dry-run", "--execute"),
        ("reset-offsets", "g", "--topic", "t:x", "--to-latest"),
        ("reset-offsets", "g", "--topic", ":1", "--to-latest"),
        ("reset-offsets", "g", "--topic", "t", "--to-datetime", "noon"),
        ("reset-offsets", "g", "--topic", "t", "--by-duration", "1h"),
        ("delete-offsets", "g"),
        ("delete-offsets", "g", "h", "--topic", "t"),
        ("delete",),
    ],
)
def test_a_senseless_command_line(arguments: tuple[str, ...]) -> None:
    finished = run_command("groups", *arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")


def test_a_cluster_that_is_not_there_is_told_in_a_sentence() -> None:
    finished = run_command("groups", "list", "-b", "127.0.0.1:1")
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert finished.stderr.startswith("headwater: Cannot connect to 127.0.0.1:1")
    assert finished.stderr.count("\n") == 1


@pytest.mark.kafka
@pytest.mark.full
def test_the_tables_are_those_of_kafkas_own_tool(
    cluster: Cluster, groups: Command, group: str, topic: str
) -> None:
    def compare(*arguments: str) -> None:
        ours = groups(*arguments).stdout
        theirs = cluster.run_tool("consumer-groups", *arguments)
        assert _trimmed(ours) == _trimmed(theirs)

    named = ("--group", group)
    compare("--describe", *named)
    compare("--describe", *named, "--verbose")
    compare("--reset-offsets", *named, "--topic", f"{topic}:2", "--to-latest", "--dry-run")
    compare(
        *("--reset-offsets", *named, "--topic", f"{topic}:2"),
        *("--to-earliest", "--dry-run", "--export"),
    )
    for protocol in ("classic", "consumer"):
        with group_member(cluster.bootstrap, group, topic, group_protocol=protocol):
            _when_quiet(groups, group)
            compare("--describe", *named)
            compare("--describe", *named, "--members", "--verbose")
            compare("--describe", *named, "--state", "--verbose")
    theirs = cluster.run_tool("consumer-groups", "--list", "--state", "--type")
    assert _trimmed(theirs) == _trimmed(groups("--list", "--state", "--type").stdout)


def _trimmed(text: str) -> list[str]:
    """Lines without the empty ones of Kafka's tool, sorted: its rows are in no order."""
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())
