"""Apache Kafka's own tools for groups, and its verifiable clients, in both protocols.

Each process costs a second or more, so a test asks for much at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import run_tool
from headwater.testing.broker_process import wait_until
from tests.support.kafka.node import require_apache_kafka
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import Membership
from tests.support.other_clients.groups.java import JavaTools, VerifiableMember, rows
from tests.support.other_clients.groups.polling import PolledMember, partitions_of, wait_shared
from tests.support.other_clients.groups.raw import commit, committed
from tests.support.other_clients.raw import RawConnection

pytestmark = pytest.mark.kafka

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]


@pytest.fixture
def java(broker: BrokerUnderTest) -> JavaTools:
    return JavaTools(broker.bootstrap)


def test_list_and_describe(
    java: JavaTools,
    join: Join,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic = make_topic(2)
    confluent.produce(topic, [Message(b"%d" % n, partition=n % 2) for n in range(10)])
    groups = {protocol: new_name() for protocol in ("classic", "consumer")}
    for protocol, group in groups.items():
        member = join(ConfluentMember, Membership(group, (topic,), protocol=protocol))  # type: ignore[arg-type]
        member.wait_records(10)
        member.call(lambda each: each.commit({(topic, 0): 3, (topic, 1): 5}))
    chosen = [flag for group in groups.values() for flag in ("--group", group)]

    listed = {each["GROUP"]: each for each in java.table("consumer-groups", "--list", "--state")}
    typed = {each["GROUP"]: each for each in java.table("consumer-groups", "--list", "--type")}
    states = rows_of(java.run("consumer-groups", "--describe", *chosen, "--state"))
    members = rows_of(java.run("consumer-groups", "--describe", *chosen, "--members", "--verbose"))
    offsets = rows_of(java.run("consumer-groups", "--describe", *chosen))
    for protocol, group in groups.items():
        assert listed[group]["STATE"] == "Stable"
        assert typed[group]["TYPE"].lower() == protocol
        [state] = [each for each in states if each["GROUP"] == group]
        assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
        assert state["ASSIGNMENT-STRATEGY"] == {"classic": "range", "consumer": "uniform"}[protocol]
        [member_row] = [each for each in members if each["GROUP"] == group]
        assert (member_row["CLIENT-ID"], member_row["#PARTITIONS"]) == ("rdkafka", "2")
        assert f"{topic}:0,1" in member_row.values()
        lag = {
            each["PARTITION"]: (each["CURRENT-OFFSET"], each["LOG-END-OFFSET"], each["LAG"])
            for each in offsets
            if each["GROUP"] == group
        }
        assert lag == {"0": ("3", "5", "2"), "1": ("5", "5", "0")}


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows of several tables, each with a header of its own."""
    found: list[dict[str, str]] = []
    for table in re.split(r"\n\s*\n", text):
        if table.strip().startswith("GROUP "):
            # One header has a blank in it.
            found += rows(table.replace("COORDINATOR (ID)", "COORDINATOR ID"))
    return found


def test_reset_and_delete(
    java: JavaTools,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
    tmp_path: Path,
) -> None:
    topic, group = make_topic(), new_name()
    confluent.produce(topic, [Message(b"%d" % n) for n in range(10)])
    assert commit(connection, group, topic, 4) == 0
    for flags, offset in (
        (("--to-earliest", "--dry-run"), 4),
        (("--shift-by", "2", "--execute"), 6),
        (("--to-latest", "--execute"), 10),
    ):
        java.run("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, *flags)
        assert committed(connection, group, topic) == (offset, 0)
    exported = java.run(
        "consumer-groups", "--reset-offsets", "--group", group, "--topic", topic,
        "--to-offset", "3", "--export", "--dry-run",
    )  # fmt: skip
    assert f'"{topic}",0,3' in exported
    deleted = java.run("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert re.search(rf"{re.escape(topic)}\s+0\s+Successful", deleted)
    assert committed(connection, group, topic) == (-1, 0)
    assert commit(connection, group, topic, 4) == 0
    gone = java.run("consumer-groups", "--delete", "--group", group)
    assert "was successful" in gone
    assert committed(connection, group, topic) == (-1, 0)
    assert "GroupIdNotFoundException" in java.fail("consumer-groups", "--delete", "--group", group)


def test_groups_in_use(java: JavaTools, join: Join, make_topic: MakeTopic, group: str) -> None:
    """Neither their offsets nor they themselves can be taken away."""
    topic = make_topic()
    member = join(ConfluentMember, Membership(group, (topic,)))
    wait_shared([member], [(topic, 0)])
    refused = java.fail("consumer-groups", "--delete", "--group", group)
    assert "GroupNotEmptyException" in refused
    refused = java.fail(
        "consumer-groups", "--reset-offsets", "--group", group, "--topic", topic,
        "--to-earliest", "--execute",
    )  # fmt: skip
    assert "Assignments can only be reset if the group" in refused
    refused = java.fail("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert "GroupSubscribedToTopicException" in refused or "is actively subscribed" in refused


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_clients(
    protocol: str,
    broker: BrokerUnderTest,
    connection: RawConnection,
    make_topic: MakeTopic,
    group: str,
    tmp_path: Path,
) -> None:
    topic = make_topic(4)
    bootstrap = broker.bootstrap
    with (
        VerifiableMember(bootstrap, group, topic, protocol, tmp_path / "first.txt") as first,
        VerifiableMember(bootstrap, group, topic, protocol, tmp_path / "second.txt") as second,
    ):
        wait_shared([first, second], partitions_of(topic, 4), least=2)
        report = run_tool(
            "verifiable-producer",
            ["--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "200"],
            kafka=require_apache_kafka(),
        ).stdout
        summary = json.loads(report.splitlines()[-1])
        assert (summary["name"], summary["sent"], summary["acked"]) == ("tool_data", 200, 200)
        wait_until(lambda: first.consumed() + second.consumed() == 200, "all is consumed")
        second.stop()
        assert second.events[-1]["name"] == "shutdown_complete"
        wait_shared([first], partitions_of(topic, 4))
        first.stop()
    commits = first.told("offsets_committed") + second.told("offsets_committed")
    assert commits and all(each["success"] for each in commits)
    assert sum(max(committed(connection, group, topic, n)[0], 0) for n in range(4)) == 200


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer(
    protocol: str,
    java: JavaTools,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic()
    confluent.produce(topic, [Message(b"%d" % n) for n in range(5)])
    for expected in (["0", "1", "2"], ["3", "4"]):
        printed = java.run(
            "console-consumer", "--topic", topic, "--group", group, "--from-beginning",
            "--max-messages", str(len(expected)),
            "--command-property", f"group.protocol={protocol}",
        )  # fmt: skip
        assert printed.split() == expected
    assert committed(connection, group, topic) == (5, 0)


def test_a_classic_group_gets_a_java_member_of_the_newer_kind(
    broker: BrokerUnderTest, join: Join, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic(4)
    partitions = partitions_of(topic, 4)
    classic = join(ConfluentMember, Membership(group, (topic,), assignors=("cooperative-sticky",)))
    wait_shared([classic], partitions)
    with VerifiableMember(
        broker.bootstrap, group, topic, "consumer", tmp_path / "java.txt"
    ) as newer:
        wait_shared([classic, newer], partitions, least=2)
        classic.close()
        wait_shared([newer], partitions)
        newer.stop()
