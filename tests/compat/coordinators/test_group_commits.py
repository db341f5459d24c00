"""What is committed stays committed, whatever becomes of the broker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import TIMEOUT_S, Message
from tests.support.other_clients.groups.contract import GroupMember, Membership
from tests.support.other_clients.groups.known import MEMBERS
from tests.support.other_clients.groups.polling import PolledMember
from tests.support.other_clients.groups.process import MemberProcess
from tests.support.other_clients.groups.raw import committed, wait_for_coordinators
from tests.support.other_clients.raw import RawConnection
from tests.support.requirements import require_tool

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]
Client = type[GroupMember]


def values(first: int, count: int) -> list[Message]:
    return [Message(b"%d" % n) for n in range(first, first + count)]


def test_three_ways_to_commit(
    client: Client,
    join: Join,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic()
    partition = (topic, 0)
    confluent.produce(topic, values(0, 5))
    member = join(client, Membership(group, (topic,)))
    member.wait_records(5)
    assert member.call(lambda each: each.committed(partition)) is None
    assert committed(connection, group, topic) == (-1, 0)
    member.call(lambda each: each.commit())
    assert committed(connection, group, topic) == (5, 0)
    member.call(lambda each: each.commit({partition: 2}))
    assert member.call(lambda each: each.committed(partition)) == 2
    confluent.produce(topic, values(5, 5))
    member.wait_records(10)
    member.call(lambda each: each.commit_later())
    wait_until(lambda: committed(connection, group, topic) == (10, 0), "it is committed later")
    member.close()

    automatic = join(client, Membership(group, (topic,), auto_commit=True))
    confluent.produce(topic, values(10, 5))
    automatic.wait_records(5)
    assert automatic.records[0].offset == 10
    wait_until(lambda: committed(connection, group, topic) == (15, 0), "it is committed by itself")


def test_closing_commits(
    client: Client,
    join: Join,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic()
    confluent.produce(topic, values(0, 7))
    member = join(client, Membership(group, (topic,), auto_commit=True))
    member.wait_records(7)
    member.close()
    assert committed(connection, group, topic) == (7, 0)


def test_kcat(
    broker: BrokerUnderTest,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    """Its balanced consumer reads to the end, commits and leaves; the next one goes on there."""
    topic = make_topic(2)
    command = [require_tool("kcat"), "-b", broker.bootstrap, "-G", group, "-e", "-q"]
    command += ["-X", "auto.offset.reset=earliest", "-X", "fetch.wait.max.ms=50", topic]
    for first in (0, 10):
        confluent.produce(
            topic, [Message(b"%d" % n, partition=n % 2) for n in range(first, first + 10)]
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        assert sorted(map(int, done.stdout.split())) == list(range(first, first + 10))
        found = [committed(connection, group, topic, number) for number in range(2)]
        assert found == [(first // 2 + 5, 0)] * 2


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_the_broker_comes_back(
    ending: str, fragile_broker: BrokerProcess | KafkaNode, new_name: Callable[[], str]
) -> None:
    """Members of all clients go on where they were, and what they had committed is still known."""
    bootstrap = fragile_broker.bootstrap
    confluent = ConfluentClient(bootstrap)
    topic = new_name()
    confluent.create_topic(topic)
    confluent.produce(topic, values(0, 5))
    groups = [new_name() for _ in MEMBERS]
    with ExitStack() as stack:
        members = [
            stack.enter_context(MemberProcess(client.name, bootstrap, Membership(group, (topic,))))
            for client, group in zip(MEMBERS, groups, strict=True)
        ]
        with RawConnection(bootstrap) as connection:
            for group in groups:
                wait_committed(connection, group, topic, 5)
        if ending == "stop":
            fragile_broker.stop()
        else:
            fragile_broker.kill()
        fragile_broker.start()
        wait_for_coordinators(bootstrap)
        with RawConnection(bootstrap) as connection:
            for group in groups:
                assert loaded(connection, group, topic) == 5
            confluent.produce(topic, values(5, 5))
            for client, member, group in zip(MEMBERS, members, groups, strict=True):
                wait_committed(connection, group, topic, 10, client.name)
                wait_until(lambda: len(member.records) == 10, "its report has come")  # noqa: B023
                assert [each.offset for each in member.records] == list(range(10))


def loaded(connection: RawConnection, group: str, topic: str) -> int:
    """What is committed, as soon as the coordinator knows."""
    wait_until(lambda: committed(connection, group, topic)[1] == 0, "the offsets are loaded")
    return committed(connection, group, topic)[0]


def wait_committed(
    connection: RawConnection, group: str, topic: str, offset: int, who: str = "it"
) -> None:
    wait_until(
        lambda: committed(connection, group, topic) == (offset, 0),
        f"{who} has committed {offset}",
        60.0,
    )
