"""Groups on topics with gaps: every member's lag comes to nothing, whoever tells it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.delays import HOUR, delayed, group_lags
from tests.support.other_clients.go_clients import GO_CLIENTS, GoClient
from tests.support.other_clients.groups.contract import GroupMember, Membership
from tests.support.other_clients.groups.java import JavaTools
from tests.support.other_clients.groups.known import MEMBERS
from tests.support.other_clients.groups.polling import PolledMember
from tests.support.other_clients.java_client import JavaClient
from tests.support.other_clients.kafkajs import delayed_round_trip
from tests.support.other_clients.round_trips import DelayedRoundTrip
from tests.support.waiting import eventually

MakeTopic = Callable[..., str]

PARTITIONS = 3
ISOLATIONS = ["read_committed", pytest.param("read_uncommitted", marks=pytest.mark.full)]
#: Of a client in another language: it sends a third at once, a third soon, a third in an hour.
COUNT = 30


def check_no_lag(broker: BrokerUnderTest, group: str, topic: str) -> None:
    """All is committed up to the end, and the end is where any client finds it."""
    confluent = ConfluentClient(broker.bootstrap)

    def told() -> bool:
        lags = group_lags(broker.bootstrap, group)
        ends = {each: confluent.end_offsets(topic, each)[1] for each in range(PARTITIONS)}
        return {each: (end, end, 0) for each, end in ends.items() if end} == {
            each: tuple(lag) for each, lag in lags.items() if lag.end
        }

    eventually(told)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("member_class", MEMBERS, ids=lambda kind: kind.name)
def test_lag_comes_to_nothing(
    member_class: type[GroupMember],
    isolation: str,
    broker: BrokerUnderTest,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic, group = make_topic(PARTITIONS, delay_mode="header"), new_name()
    expected = set()
    for partition in range(PARTITIONS):
        for number in range(5):
            value = b"%d-%d" % (partition, number)
            confluent.produce(topic, [delayed(value, f"{number * 100}ms", partition)])
            confluent.produce(topic, [delayed(b"an hour", HOUR, partition)])
            confluent.produce(topic, [Message(value + b"-at-once", partition=partition)])
            expected |= {value, value + b"-at-once"}
    membership = Membership(group, (topic,), isolation=isolation)
    with PolledMember(member_class, broker.bootstrap, membership) as member:
        found = member.wait_records(len(expected))
        assert {each.value for each in found} == expected
        member.call(lambda each: each.commit())
        check_no_lag(broker, group, topic)


def check_round_trip(report: DelayedRoundTrip) -> None:
    assert report.failure is None
    expected = sorted(str(number) for number in range(COUNT) if number % 3 != 2)
    assert sorted(each.value for each in report.records) == expected
    for each in report.records:
        # A copy has the time at which it was due.
        assert each.timestamp_ms <= each.arrived_ms
    soon = [each for each in report.records if int(each.value) % 3 == 1]
    assert all(each.timestamp_ms >= each.sent_ms for each in soon)


def test_kafkajs(
    broker: BrokerUnderTest, make_topic: MakeTopic, new_name: Callable[[], str]
) -> None:
    topic, group = make_topic(PARTITIONS, delay_mode="header"), new_name()
    check_round_trip(delayed_round_trip(broker.bootstrap, topic, group, COUNT))
    check_no_lag(broker, group, topic)


@pytest.mark.parametrize("go_client", GO_CLIENTS, ids=lambda each: each.name)
def test_clients_in_go(
    go_client: GoClient,
    broker: BrokerUnderTest,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic, group = make_topic(PARTITIONS, delay_mode="header"), new_name()
    check_round_trip(go_client.round_trip(broker.bootstrap, topic, group, COUNT))
    check_no_lag(broker, group, topic)


@pytest.mark.kafka
def test_kafkas_own_client(
    broker: BrokerUnderTest, make_topic: MakeTopic, new_name: Callable[[], str], tmp_path: Path
) -> None:
    """With a transaction that is committed and one that is aborted among the rest."""
    with JavaClient(tmp_path / "log") as java:
        for protocol in ("classic", "consumer"):
            topic, group = make_topic(PARTITIONS, delay_mode="header"), new_name()
            told = java.run("delayed", broker.bootstrap, protocol, topic, group, str(COUNT))
            assert told == {"read": f"{COUNT // 3 * 2 + 2}", "lag": "0", "uncommitted": "0"}
            check_no_lag(broker, group, topic)
    rows = JavaTools(broker.bootstrap).table("consumer-groups", "--describe", "--group", group)
    assert {row["LAG"] for row in rows} == {"0"}
    assert all(row["CURRENT-OFFSET"] == row["LOG-END-OFFSET"] for row in rows)
