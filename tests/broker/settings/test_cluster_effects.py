"""Settings about several brokers change what a running cluster does."""

from functools import partial
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.start import zookeeper as zookeeper_settings
from headwater.broker.start.zookeeper import zookeeper_connector
from headwater.cluster.controller.controller import Controller
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.cluster.store.zookeeper.connector import Digest
from headwater.cluster.topics.new_topic import NewTopic
from headwater.replication.following.options import FetcherOptions
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

ALL_BROKERS = ConfigResource(ResourceKind.BROKER, "")


def is_there(cluster: BrokerCluster, topic: str) -> bool:
    return topic in cluster.image.topics


@pytest.mark.parametrize("count", [1, 2, 3])
def test_replication_factors(tmp_path: Path, count: int) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        controller = cluster.context(cluster.controller_id).controller
        await controller.create_topics([NewTopic("orders")])
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["billing"])
            await cluster.send(1, request)
        for topic in ("orders", "__consumer_offsets", "__transaction_state"):
            await cluster.until(partial(is_there, cluster, topic))
            assert cluster.image.topics[topic].replication_factor == count

    names = ("default", "offsets.topic", "transaction.state.log")
    texts = {f"{name}.replication.factor": str(count) for name in names}
    run_cluster_scenario(tmp_path, scenario, texts)


@pytest.mark.parametrize("is_allowed", [False, True])
def test_unclean_leader_election_enable(tmp_path: Path, is_allowed: bool) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        controller = cluster.context(cluster.controller_id).controller
        first, second = cluster.others(cluster.controller_id)
        await cluster.create_topic("orders", [[first, second]])
        await cluster.stop(second)
        await cluster.until(lambda: cluster.partition("orders").isr == (first,))
        await cluster.stop(first)
        await cluster.until(lambda: cluster.leader_of("orders") == -1)
        await cluster.start(second)
        if not is_allowed:
            assert cluster.leader_of("orders") == -1
            # A topic may allow it for itself while everything runs.
            orders = ConfigResource(ResourceKind.TOPIC, "orders")
            await controller.set_configs(orders, {"unclean.leader.election.enable": "true"})
        await cluster.until(lambda: cluster.leader_of("orders") == second)
        assert controller.unclean_election_count == 1

    texts = {"unclean.leader.election.enable": str(is_allowed).lower()}
    run_cluster_scenario(tmp_path, scenario, texts)


@pytest.mark.parametrize(
    ("texts", "asked_count"),
    [
        ({"controlled.shutdown.enable": "false"}, 0),
        ({"controlled.shutdown.max.retries": "0"}, 1),
        ({"controlled.shutdown.max.retries": "2"}, 3),
    ],
)
def test_controlled_shutdown(
    tmp_path: Path, texts: dict[str, str], asked_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def refuse(_controller: Controller, broker_id: int, _epoch: int) -> int:
        asked.append(broker_id)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Not now.")

    async def scenario(cluster: BrokerCluster) -> None:
        victim = cluster.others(cluster.controller_id)[0]
        with monkeypatch.context() as patch:
            patch.setattr(Controller, "shut_down_broker", refuse)
            await cluster.stop(victim)
        assert asked == [victim] * asked_count
        await cluster.until(lambda: victim not in cluster.image.brokers)

    run_cluster_scenario(tmp_path, scenario, {"controlled.shutdown.retry.backoff.ms": "1", **texts})


def test_who_stops_hands_over_first(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        controller_id = cluster.controller_id
        victim, other = cluster.others(controller_id)
        await cluster.create_topic("orders", [[victim, other]])
        seen: list[tuple[int, bool]] = []
        image = cluster.context(controller_id).member.image

        async def look(change: object) -> None:
            nonlocal image
            image = cluster.context(controller_id).controller.image
            leader = image.topics["orders"].partitions[0].leader
            seen.append((leader, victim in image.brokers))

        cluster.context(controller_id).member.subscribe(look)
        await cluster.stop(victim)
        assert (other, True) in seen, "another leads while the broker is still there"

    run_cluster_scenario(tmp_path, scenario)


def test_followers_fetch_as_they_are_told_and_follow_changes() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "1"})
    assert FetcherOptions.from_settings(settings.values) == FetcherOptions()
    names = (
        "replica.fetch.min.bytes",
        "replica.fetch.wait.max.ms",
        "replica.fetch.response.max.bytes",
        "replica.fetch.max.bytes",
        "replica.fetch.backoff.ms",
        "replica.socket.timeout.ms",
        "num.replica.fetchers",
    )
    texts = {name: str(number) for number, name in enumerate(names, 2)}
    told = BrokerSettings.from_texts({"broker.id": "1", **texts})
    assert FetcherOptions.from_settings(told.values) == FetcherOptions(*range(2, 9))


def test_num_replica_fetchers_while_running(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2]] * 6)
        await cluster.until_in_sync("orders")
        follower = cluster.context(2).replication.fetchers
        assert len(follower._lanes) == 1
        controller = cluster.context(cluster.controller_id).controller
        await controller.set_configs(ALL_BROKERS, {"num.replica.fetchers": "3"})
        await cluster.until(lambda: len(follower._lanes) == 3)

    run_cluster_scenario(tmp_path, scenario)


def test_the_way_to_zookeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, object]]] = []

    def remember(address: str, **arguments: object) -> None:
        asked.append((address, arguments))

    monkeypatch.setattr(zookeeper_settings, "ZooKeeperConnector", remember)
    connect = {"zookeeper.connect": "zoo1:2181,zoo2:2181/orders"}
    zookeeper_connector(BrokerSettings.from_texts(connect))
    others = {
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connection.timeout.ms": "70000",
        "zookeeper.digest.user": "headwater",
        "zookeeper.digest.password": "secret",
        "zookeeper.set.acl": "true",
    }
    zookeeper_connector(BrokerSettings.from_texts(connect | others))
    assert asked[0] == (
        connect["zookeeper.connect"],
        {
            "session_timeout_ms": 18_000,
            "connection_timeout_ms": None,
            "digest": None,
            "set_acl": False,
        },
    )
    assert asked[1][1] == {
        "session_timeout_ms": 6_000,
        "connection_timeout_ms": 70_000,
        "digest": Digest("headwater", "secret"),
        "set_acl": True,
    }
