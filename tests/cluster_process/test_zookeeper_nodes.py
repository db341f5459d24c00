"""What lies in ZooKeeper under a running cluster: any client can read it, and may even break it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadwaterCluster]:
    address = shared_zookeeper().address + fresh_chroot()
    with HeadwaterCluster(tmp_path_factory.mktemp("cluster"), address) as cluster:
        yield cluster


@pytest.fixture
def client(running: HeadwaterCluster) -> Iterator[KazooClient]:
    client = KazooClient(running.zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


def document(client: KazooClient, path: str) -> Any:
    return json.loads(client.get(path)[0])


def controller_epoch(client: KazooClient) -> int:
    return int(client.get("/controller_epoch")[0])


def controller_of(client: KazooClient) -> int | None:
    """Who is the controller by what the node says, if that can be read."""
    try:
        return int(document(client, "/controller")["brokerid"])
    except (NoNodeError, ValueError, TypeError, KeyError):
        return None


def test_the_nodes_are_what_the_notes_show(
    cluster: HeadwaterCluster, new_topic: Callable[..., str], client: KazooClient
) -> None:
    topic = new_topic()
    assert sorted(map(int, client.get_children("/brokers/ids"))) == list(BROKER_IDS)
    for broker_id, broker in cluster.brokers.items():
        registered = document(client, f"/brokers/ids/{broker_id}")
        assert (registered["host"], registered["port"]) == (broker.host, broker.port)
        assert client.exists(f"/brokers/ids/{broker_id}").ephemeralOwner != 0
    controller = document(client, "/controller")
    assert controller.keys() == {"version", "brokerid", "timestamp"}
    assert controller["brokerid"] == cluster.controller_id()
    assignment = document(client, f"/brokers/topics/{topic}")["partitions"]
    for number in range(3):
        found = cluster.partition(topic, number)
        assert tuple(assignment[str(number)]) == found.replicas
        state = document(client, f"/brokers/topics/{topic}/partitions/{number}/state")
        assert state["leader"] == found.leader_id
        assert state["leader_epoch"] == found.leader_epoch
        assert sorted(state["isr"]) == sorted(found.isr)
        assert state["controller_epoch"] <= controller_epoch(client)


@pytest.mark.parametrize("harm", ["deleted", "garbage"])
def test_the_controllers_node_is_broken(
    cluster: HeadwaterCluster, new_topic: Callable[..., str], client: KazooClient, harm: str
) -> None:
    epoch = controller_epoch(client)
    if harm == "deleted":
        client.delete("/controller")
    else:
        client.set("/controller", b"\xff{")
    wait_until(
        lambda: controller_epoch(client) > epoch and controller_of(client) in BROKER_IDS,
        "there is another election",
    )
    elected = controller_of(client)
    assert elected is not None
    wait_until(
        lambda: all(cluster.controller_id([each]) == elected for each in BROKER_IDS),
        "every broker knows the controller",
    )
    # It works: a topic needs the controller, and so do its replicas to be in sync.
    topic = new_topic()
    state = document(client, f"/brokers/topics/{topic}/partitions/0/state")
    assert state["controller_epoch"] == controller_epoch(client)


def test_a_second_broker_with_the_same_id_is_refused(cluster: HeadwaterCluster) -> None:
    first = cluster.brokers[2]
    second = BrokerProcess(
        first.directory.with_name("second"),
        broker_id=2,
        settings=first.settings,
        arguments=("--zookeeper", cluster.zookeeper),
    )
    second.launch()
    try:
        assert second.wait(60.0) == 1
    finally:
        second.kill()
    assert "2" in second.tail() and "headwater:" in second.tail()
    cluster.wait_for_brokers(BROKER_IDS)
    assert first.is_running
