"""Members of the ZooKeeper ensemble fail under a cluster at work, and brokers beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.testing.broker_process import wait_until
from headwater.zookeeper.ensemble import ZooKeeperEnsemble
from headwater.zookeeper.server import ZooKeeperServer
from tests.support.brokers.broker_failures import Victim, victim_node
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.zookeeper import fresh_chroot, zookeeper_ensemble
from tests.support.traffic.traffic import Traffic

pytestmark = pytest.mark.full

OWN = "own-client"


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    with zookeeper_ensemble(tmp_path_factory.mktemp("zookeeper")) as ensemble:
        yield ensemble


@pytest.fixture(scope="module")
def running(
    ensemble: ZooKeeperEnsemble, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadwaterCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with HeadwaterCluster(directory, ensemble.address + fresh_chroot()) as cluster:
        yield cluster


@pytest.fixture
def members(ensemble: ZooKeeperEnsemble) -> Iterator[ZooKeeperEnsemble]:
    """All members serve when a test begins, and at its end."""
    yield ensemble
    for server in ensemble.servers:
        if not server.is_running:
            server.kill()
            server.launch()
    for server in ensemble.servers:
        server.wait_until_serving()


def member(ensemble: ZooKeeperEnsemble, role: str) -> ZooKeeperServer:
    return ensemble.leader() if role == "leader" else ensemble.followers()[0]


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_member_is_killed_and_then_a_broker(
    members: ZooKeeperEnsemble,
    cluster: HeadwaterCluster,
    new_topic: Callable[..., str],
    tmp_path: Path,
    role: str,
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        member(members, role).kill()
        traffic.wait_for_progress()
        for victim in Victim:
            victim_node(cluster, topic, victim).kill()
            traffic.wait_for_progress()
            cluster.heal()
            for number in range(3):
                cluster.wait_in_sync(topic, number, 3)
        traffic.finish()


def test_a_member_and_a_leader_are_killed_at_once(
    members: ZooKeeperEnsemble,
    cluster: HeadwaterCluster,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        node = victim_node(cluster, topic, Victim.LEADER)
        member(members, "leader").kill()
        node.kill()
        traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()


def test_the_leading_member_falls_silent(
    members: ZooKeeperEnsemble,
    cluster: HeadwaterCluster,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    topic = new_topic()
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        silent = member(members, "leader")
        silent.pause()
        try:
            others = [each for each in members.servers if each is not silent]
            wait_until(
                lambda: any(each.mode() == "leader" for each in others), "another leads", 60.0
            )
            victim_node(cluster, topic, Victim.LEADER).kill()
            traffic.wait_for_progress()
        finally:
            silent.resume()
        cluster.heal()
        traffic.finish()


def test_brokers_serve_while_there_is_no_zookeeper(
    members: ZooKeeperEnsemble,
    cluster: HeadwaterCluster,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    """Nobody can be elected meanwhile, and nobody needs to be."""
    topic = new_topic()
    with Traffic(cluster, topic, OWN, tmp_path) as traffic:
        members.kill()
        for _ in range(3):
            traffic.wait_for_progress()
        members.start()
        traffic.wait_for_progress()
        victim_node(cluster, topic, Victim.LEADER).kill()
        traffic.wait_for_progress()
        cluster.heal()
        traffic.finish()
