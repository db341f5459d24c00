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

from tests.support.broker_failures import FAILURES, Victim, stop_cleanly, victim_node
from tests.support.three_brokers import ThreeBrokers
from tests.support.traffic import CLIENTS, PARTITION_COUNT, Traffic

OWN = "own-client"
#: What the small tier asks for, of the Headwater cluster alone.
SMALL = {
    ("hard_bounce", Victim.LEADER, OWN),
    ("hard_shutdown", Victim.CONTROLLER, "aiokafka"),
}

NewTopic = Callable[..., str]


def matrix() -> Iterator[object]:
    for failure in FAILURES:
        for victim in Victim:
            for client in CLIENTS:
                is_small = (failure, victim, client) in SMALL
                yield pytest.param(
                    failure, victim, client, marks=[] if is_small else [pytest.mark.full]
                )


@pytest.mark.parametrize(("failure", "victim", "client"), list(matrix()))
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
    ("victim", "client"),
    [
        (Victim.LEADER, "confluent-kafka"),
        pytest.param(Victim.LEADER, OWN, marks=pytest.mark.full),
        pytest.param(Victim.CONTROLLER, OWN, marks=pytest.mark.full),
    ],
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


@pytest.mark.parametrize(
    "client", [OWN, *(pytest.param(each, marks=pytest.mark.full) for each in CLIENTS[1:])]
)
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


@pytest.mark.full
@pytest.mark.parametrize("client", CLIENTS)
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
