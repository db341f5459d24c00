"""Lines between brokers, ZooKeeper and clients are cut, and nobody is told so.

Each broker has a network namespace of its own. What was cut is mended in the end, and then nothing
that was acknowledged is missing; where enough brokers hear each other, work goes on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.network_namespaces import CLIENTS, STORE, BrokerNetwork
from tests.support.brokers.zookeeper import fresh_chroot, zookeeper_ensemble
from tests.support.traffic.traffic import Traffic

pytestmark = pytest.mark.full

OWN = "own-client"
#: Longer than a follower may lag and than a session lasts.
LONG_CUT_S = 6.0

NewTopic = Callable[..., str]


@pytest.fixture(scope="module")
def network() -> Iterator[BrokerNetwork]:
    with BrokerNetwork() as network:
        yield network


@pytest.fixture(scope="module")
def running(
    network: BrokerNetwork, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadwaterCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with zookeeper_ensemble(directory / "zookeeper", host="0.0.0.0") as ensemble:
        members = [f"{network.store_host}:{server.port}" for server in ensemble.servers]
        with HeadwaterCluster(
            directory,
            ",".join(members) + fresh_chroot(),
            hosts=network.hosts,
            command_prefixes=network.prefixes,
        ) as cluster:
            yield cluster


def test_two_brokers_do_not_hear_each_other(
    network: BrokerNetwork, cluster: HeadwaterCluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Both reach the controller, so each drops the other from the partitions that it leads."""
    topic = new_topic()
    controller = cluster.controller_node().broker_id
    one, other = cluster.others(controller)
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        with network.cut([(one, other)]):
            for number in range(3):
                leader = cluster.leader_of(topic, number)
                cluster.wait_in_sync(topic, number, 3 if leader == controller else 2)
            traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()


@pytest.mark.parametrize("hears_clients", [True, False])
@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_a_broker_is_cut_off_from_the_cluster(
    network: BrokerNetwork,
    cluster: HeadwaterCluster,
    new_topic: NewTopic,
    tmp_path: Path,
    victim: str,
    hears_clients: bool,
) -> None:
    """It believes that it leads, and perhaps clients still come to it, but nothing is final."""
    topic = new_topic()
    if victim == "controller":
        broker_id = cluster.controller_node().broker_id
    else:
        broker_id = cluster.leader_of(topic, 0)
    others = cluster.others(broker_id)
    lines = [(broker_id, other) for other in (*others, STORE)]
    if not hears_clients:
        lines.append((broker_id, CLIENTS))
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        with network.cut(lines), cluster.away([broker_id]):
            for number in range(3):
                cluster.wait_for_leader(topic, number, others)
            traffic.wait_for_progress()
        cluster.heal()
        traffic.wait_for_progress()
        traffic.finish()


@pytest.mark.parametrize("client", [OWN, "confluent-kafka"])
@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_a_broker_loses_zookeeper_only(
    network: BrokerNetwork,
    cluster: HeadwaterCluster,
    new_topic: NewTopic,
    tmp_path: Path,
    victim: str,
    client: str,
) -> None:
    """It counts as gone for the controller, though all other brokers hear it."""
    topic = new_topic()
    if victim == "controller":
        broker_id = cluster.controller_node().broker_id
    else:
        broker_id = cluster.leader_of(topic, 0)
    others = cluster.others(broker_id)
    with Traffic(cluster, topic, client, tmp_path) as traffic:
        with network.cut([(broker_id, STORE)]), cluster.away([broker_id]):
            for number in range(3):
                cluster.wait_for_leader(topic, number, others)
            traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()


def test_the_controller_hears_no_other_broker(
    network: BrokerNetwork, cluster: HeadwaterCluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """It keeps its session, so no other is elected: what needs the controller waits."""
    topic = new_topic()
    controller = cluster.controller_node().broker_id
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        with network.cut([(controller, other) for other in cluster.others(controller)]):
            time.sleep(LONG_CUT_S)
        cluster.heal()
        traffic.wait_for_progress()
        traffic.finish()
