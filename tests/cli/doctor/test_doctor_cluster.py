"""`headwater doctor` on a cluster: who is missing, what is refused, whether ZooKeeper serves."""

import asyncio
import uuid
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.doctor.cluster_check import check_coordination, check_durability
from headwater.cli.doctor.examination import examine_cluster
from headwater.cli.doctor.findings import Finding, Verdict
from headwater.cli.doctor.replica_check import check_missing_brokers
from headwater.cli.doctor.zookeeper_check import ServerAnswer, judge, server_addresses
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

GOOD, NOTE, PROBLEM = Verdict.GOOD, Verdict.NOTE, Verdict.PROBLEM
ORDERS = TopicInfo("orders", uuid.UUID(int=1), False, (PartitionInfo(0, 1, 0, (1, 2, 3), (1, 2)),))


def told(findings: list[Finding], subject: str) -> list[str]:
    return [each.sentence for each in findings if each.subject == subject]


def test_a_broker_with_replicas_that_is_not_there_is_named() -> None:
    [found] = check_missing_brokers([ORDERS], [1, 2])
    assert found.verdict is PROBLEM
    assert found.sentence == "Broker 3, which has a replica of 1 partition, is not there."
    assert [each.verdict for each in check_missing_brokers([ORDERS], [1, 2, 3, 4])] == [GOOD]
    assert list(check_missing_brokers([], [1])) == [], "a broker by itself is no cluster"


def test_brokers_that_promise_the_same_say_it_once() -> None:
    alike = {
        "acks.all.flush": "auto",
        "min.insync.replicas": "2",
        "log.flush.interval.messages": "",
    }
    failure = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "It is late.")
    values: dict[int, dict[str, str] | KafkaError] = {
        1: alike,
        2: alike,
        3: alike | {"acks.all.flush": "leader"},
        4: failure,
    }
    found = list(check_durability(values, [ORDERS]))
    assert [each.verdict for each in found] == [PROBLEM, GOOD, GOOD]
    assert found[0].sentence == "Broker 4 does not tell its settings: It is late."
    assert found[1].sentence.startswith("Brokers 1, 2: ")
    assert found[2].sentence.startswith("Broker 3: ") and "leader's disk" in found[2].sentence


def test_the_servers_of_zookeeper_are_told_apart_from_the_path() -> None:
    text = "zoo1:2181, zoo2:2182,[::1]:2183,zoo4/clusters/one"
    assert server_addresses(text) == [
        ("zoo1", 2181),
        ("zoo2", 2182),
        ("::1", 2183),
        ("zoo4", 2181),
    ]


@pytest.mark.parametrize(
    ("modes", "verdicts", "words"),
    [
        (["leader", "follower", "follower"], [GOOD, GOOD, GOOD], "serves (follower)"),
        (["leader", "follower", None], [GOOD, GOOD, PROBLEM], "does not serve: it is gone"),
        (["leader", None, None], [GOOD, PROBLEM, PROBLEM, PROBLEM], "1 of 3 servers serve"),
        (["standalone"], [GOOD, NOTE], "one server without others"),
        ([None], [PROBLEM, PROBLEM], "0 of 1 servers serve"),
    ],
)
def test_zookeeper_needs_a_majority(
    modes: list[str | None], verdicts: list[Verdict], words: str
) -> None:
    answers = [ServerAnswer(f"zoo{i}:2181", mode, "it is gone") for i, mode in enumerate(modes)]
    found = judge(answers)
    assert [each.verdict for each in found] == verdicts
    assert words in found[-1].sentence


async def coordination(values: dict[int, dict[str, str] | KafkaError]) -> list[Finding]:
    return [each async for each in check_coordination(values, timeout_s=5.0)]


def test_zookeeper_is_asked_where_brokers_have_one() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(4) == b"srvr"
        writer.write(b"Zookeeper version: 3.9\nMode: standalone\nNode count: 5\n")
        writer.close()

    async def scenario() -> None:
        assert await coordination({1: {}, 2: KafkaError(ErrorCode.NONE, "")}) == []
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            found = await coordination({1: {"zookeeper.connect": f"127.0.0.1:{port}/orders"}})
            assert [each.verdict for each in found] == [GOOD, NOTE]
        found = await coordination({1: {"zookeeper.connect": f"127.0.0.1:{port}"}})
        assert [each.verdict for each in found] == [PROBLEM, PROBLEM]
        assert "does not serve" in found[0].sentence

    asyncio.run(scenario())


def test_a_cluster_that_lost_brokers_is_understood(tmp_path: Path) -> None:
    async def examined(cluster: BrokerCluster) -> list[Finding]:
        return [each async for each in examine_cluster(cluster.bootstrap, [], 10.0)]

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        found = await examined(cluster)
        assert told(found, "brokers") == ["All 3 brokers that have replicas are there."]
        assert told(found, "partitions") == [
            "The only partition has a leader and all replicas in sync."
        ]
        assert "Brokers 1, 2, 3: " in told(found, "durability")[0]
        await cluster.stop(2)
        await cluster.stop(3)
        await cluster.until(lambda: cluster.partition("orders").isr == (1,))
        found = await examined(cluster)
        assert [sentence[:8] for sentence in told(found, "brokers")] == ["Broker 2", "Broker 3"]
        assert told(found, "partitions") == [
            "Under-replicated, so one failure nearer to a loss: orders-0.",
            "With fewer replicas in sync than min.insync.replicas, so that acks=all is refused: "
            "orders-0.",
        ]

    run_cluster_scenario(tmp_path, scenario)
