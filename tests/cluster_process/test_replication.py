"""Brokers fail under a writer and a group of readers: nothing acknowledged is lost or doubled.

First Apache Kafka's replication matrix: clean and hard shutdown and clean and hard bounce, of a
leader and of the controller, with three replicas of which two must be in sync; with every client.
Then what that leaves out: brokers that fall silent, all at once, one after the other in order, and
so many that only one replica is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker_failures import FAILURES, Victim, stop_cleanly, victim_node
from tests.support.brokers.three_brokers import ThreeBrokers
from tests.support.traffic.traffic import CLIENTS, PARTITION_COUNT, Traffic

OWN = "own-client"
#: What the small tier asks for.
SMALL = {
    ("hard_bounce", Victim.LEADER, OWN),
    ("hard_shutdown", Victim.CONTROLLER, "aiokafka"),
}

NewTopic = Callable[..., str]


def on_clusters(*values: object, small: bool = False, on_kafka: bool = False) -> list[object]:
    """Parameters of a test that runs on Headwater, in the full tier unless said otherwise.

    Where it asks for something that no other does it runs on Apache Kafka too.
    """
    full = pytest.mark.full
    cases = [pytest.param("headwater", *values, marks=[] if small else [full])]
    if on_kafka:
        cases.append(pytest.param("kafka", *values, marks=[full, pytest.mark.kafka]))
    return list(cases)


def matrix() -> Iterator[object]:
    for failure in FAILURES:
        for victim in Victim:
            for client in CLIENTS:
                case = (failure, victim, client)
                # Every failure with one client, and every client with one failure.
                shows_more = client == OWN or case[:2] == ("hard_bounce", Victim.LEADER)
                yield from on_clusters(*case, small=case in SMALL, on_kafka=shows_more)


def for_clients(small: str | None = OWN) -> list[object]:
    return [
        case
        for client in CLIENTS
        for case in on_clusters(client, small=client == small, on_kafka=client == OWN)
    ]


@pytest.mark.parametrize(
    ("running", "failure", "victim", "client"), list(matrix()), indirect=["running"]
)
def test_replication_with_broker_failure(
    cluster: ThreeBrokers,
    new_topic: NewTopic,
    tmp_path: Path,
    failure: str,
    victim: Victim,
    client: str,
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, client, tmp_path) as traffic:
        FAILURES[failure](cluster, topic, victim)
        traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()


@pytest.mark.parametrize(
    ("running", "victim", "client"),
    [
        *on_clusters(Victim.LEADER, "confluent-kafka", small=True, on_kafka=True),
        *on_clusters(Victim.LEADER, OWN, on_kafka=True),
        *on_clusters(Victim.CONTROLLER, OWN, on_kafka=True),
    ],
    indirect=["running"],
)
def test_a_broker_falls_silent_for_longer_than_its_session(
    cluster: ThreeBrokers, new_topic: NewTopic, tmp_path: Path, victim: Victim, client: str
) -> None:
    """It comes to itself as a leader or controller of the past, and must notice."""
    topic = new_topic()
    with Traffic(cluster, topic, client, tmp_path) as traffic:
        node = victim_node(cluster, topic, victim)
        silent = cluster.broker_ids_of([node])
        with cluster.paused(node):
            for number in range(PARTITION_COUNT):
                cluster.wait_for_leader(topic, number, cluster.others(*silent))
            traffic.wait_for_progress()
        traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()


@pytest.mark.parametrize(("running", "client"), for_clients(), indirect=["running"])
def test_a_rolling_restart(
    cluster: ThreeBrokers, new_topic: NewTopic, tmp_path: Path, client: str
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, client, tmp_path) as traffic:
        for node in cluster.nodes.values():
            stop_cleanly(node)
            node.start()
            for number in range(PARTITION_COUNT):
                cluster.wait_in_sync(topic, number, 3)
        traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()


@pytest.mark.parametrize(("running", "client"), for_clients(None), indirect=["running"])
def test_all_brokers_are_killed_at_once(
    cluster: ThreeBrokers, new_topic: NewTopic, tmp_path: Path, client: str
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, client, tmp_path) as traffic:
        for node in cluster.nodes.values():
            node.kill()
        cluster.heal()
        traffic.wait_for_progress()
        traffic.finish()


@pytest.mark.full
def test_one_replica_of_three_goes_on(
    cluster: ThreeBrokers, new_topic: NewTopic, tmp_path: Path
) -> None:
    """With one in sync as the minimum, all but one of the replicas may fail."""
    topic = new_topic(min_insync_replicas="1")
    with Traffic(cluster, topic, OWN, tmp_path, is_read=False) as traffic:
        for _ in range(2):
            victim_node(cluster, topic, Victim.LEADER).kill()
            traffic.wait_for_progress()
        cluster.heal()
        traffic.wait_for_progress()
        traffic.finish()


@pytest.mark.full
def test_a_producer_without_idempotence_loses_nothing(
    cluster: ThreeBrokers, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, OWN, tmp_path, is_idempotent=False) as traffic:
        FAILURES["hard_bounce"](cluster, topic, Victim.LEADER)
        traffic.wait_for_progress()
        traffic.finish()
