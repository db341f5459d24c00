"""How acknowledged messages are lost in a cluster, and the settings against it: three brokers.

Followers that are stopped (not killed) stand for followers that have not fetched yet: the cluster
still counts them as in sync while their leader, alone, takes a message and dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from headwater import KafkaError, Producer
from headwater.base.errors import ErrorCode
from tests.support.kafka.cluster import BROKER_IDS, KafkaCluster
from tests.support.other_clients.users import read_all, values_of, wait_for

pytestmark = [pytest.mark.full, pytest.mark.kafka]

_QUICK: dict[str, object] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 50,
    "linger.ms": 0,
}
_SLOW_S = 60.0
#: Longer than a follower's fetch waits at the leader (`replica.fetch.wait.max.ms`).
_PARKED_FETCHES_S = 0.7


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: KafkaCluster) -> Iterator[KafkaCluster]:
    """All three brokers run when a test begins."""
    yield running
    for node in running.brokers.values():
        if not node.is_running:
            node.start()
    running.wait_for_brokers(BROKER_IDS)


@contextlib.contextmanager
def _stopped(cluster: KafkaCluster, broker_ids: list[int]) -> Iterator[None]:
    """These brokers do nothing, and do not know it."""
    pids = [cluster.brokers[broker_id].pid for broker_id in broker_ids]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        # A fetch that a follower left at the leader would still bring it the next message, so all
        # of them are answered first, with nothing.
        time.sleep(_PARKED_FETCHES_S)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _others(broker_id: int) -> list[int]:
    return [each for each in BROKER_IDS if each != broker_id]


def test_acks_1_loses_what_only_a_leader_had(cluster: KafkaCluster) -> None:
    topic = cluster.create_topic("acks-1")
    leader = cluster.leader_of(topic, 0)
    with Producer(
        _QUICK, bootstrap_servers=cluster.bootstrap, acks="1", enable_idempotence=False
    ) as producer:
        producer.send(topic, b"replicated").result(_SLOW_S)
        # The followers have it when it can be read.
        wait_for(lambda: len(read_all(cluster.bootstrap, topic)) == 1, "it is replicated")
        with _stopped(cluster, _others(leader)):
            assert producer.send(topic, b"acknowledged").result(_SLOW_S).offset == 1
            cluster.brokers[leader].kill()
        producer.send(topic, b"later").result(_SLOW_S)
    # With acks=1 it can be read only when the followers have it.
    wait_for(lambda: len(read_all(cluster.bootstrap, topic)) == 2, "it is replicated")
    found = values_of(read_all(cluster.bootstrap, topic))
    assert found == [b"replicated", b"later"]


def test_acks_all_acknowledges_only_what_survives_the_leader(cluster: KafkaCluster) -> None:
    topic = cluster.create_topic("acks-all")
    leader = cluster.leader_of(topic, 0)
    with Producer(_QUICK, bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        producer.send(topic, b"replicated").result(_SLOW_S)
        cluster.wait_in_sync(topic, 0, 3)
        with _stopped(cluster, _others(leader)):
            future = producer.send(topic, b"acknowledged")
            with pytest.raises(KafkaError):
                future.result(1.0)
            cluster.brokers[leader].kill()
        # It was not acknowledged, so the producer sends it to the new leader.
        future.result(_SLOW_S)
        producer.send(topic, b"later").result(_SLOW_S)
    found = values_of(read_all(cluster.bootstrap, topic))
    assert found == [b"replicated", b"acknowledged", b"later"]


def _leave_the_leader_alone(cluster: KafkaCluster, topic: str) -> int:
    """Kill the followers; the cluster notices that only the leader is in sync."""
    leader = cluster.leader_of(topic, 0)
    for broker_id in _others(leader):
        cluster.brokers[broker_id].kill()
    cluster.wait_in_sync(topic, 0, 1)
    return leader


def test_an_unclean_election_loses_what_the_last_leader_had(cluster: KafkaCluster) -> None:
    careless = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    topic = cluster.create_topic("unclean", configs=careless)
    with Producer(_QUICK, bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        producer.send(topic, b"replicated").result(_SLOW_S)
        leader = _leave_the_leader_alone(cluster, topic)
        # The whole set of replicas in sync has it, and that is one broker.
        producer.send(topic, b"acknowledged").result(_SLOW_S)
        cluster.brokers[leader].kill()
        for broker_id in _others(leader):
            cluster.brokers[broker_id].start()
        # The numbers of an idempotent producer show that something is missing.
        with pytest.raises(KafkaError) as noticed:
            producer.send(topic, b"unwritten").result(_SLOW_S)
        assert noticed.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with Producer(_QUICK, bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        producer.send(topic, b"later").result(_SLOW_S)
    found = values_of(read_all(cluster.bootstrap, topic))
    assert found == [b"replicated", b"later"]


def test_a_clean_election_waits_for_the_last_leader(cluster: KafkaCluster) -> None:
    topic = cluster.create_topic("clean", configs={"min.insync.replicas": "1"})
    with Producer(_QUICK, bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        producer.send(topic, b"replicated").result(_SLOW_S)
        leader = _leave_the_leader_alone(cluster, topic)
        producer.send(topic, b"acknowledged").result(_SLOW_S)
        cluster.brokers[leader].kill()
        for broker_id in _others(leader):
            cluster.brokers[broker_id].start()
        future = producer.send(topic, b"later")
        with pytest.raises(KafkaError):
            future.result(2.0)
        cluster.brokers[leader].start()
        future.result(_SLOW_S)
    found = values_of(read_all(cluster.bootstrap, topic))
    assert found == [b"replicated", b"acknowledged", b"later"]


def _refusals(cluster: KafkaCluster, topic: str, value: bytes) -> set[ErrorCode]:
    """Why a message is not taken: that its time was over, and what stood in its way."""
    with (
        Producer(
            _QUICK,
            bootstrap_servers=cluster.bootstrap,
            acks="all",
            # One broker alone may not be able to give out numbers for producers.
            enable_idempotence=False,
            delivery_timeout_ms=3_000,
            request_timeout_ms=2_000,
        ) as producer,
        pytest.raises(KafkaError) as refused,
    ):
        producer.send(topic, value).result(_SLOW_S)
    errors = (refused.value, refused.value.__cause__)
    return {error.code for error in errors if isinstance(error, KafkaError)}


def test_min_insync_replicas_acknowledges_nothing_that_one_broker_has_alone(
    cluster: KafkaCluster,
) -> None:
    configs = {"min.insync.replicas": "2", "max.message.bytes": "1000"}
    topic = cluster.create_topic("min-insync", configs=configs)
    with Producer(_QUICK, bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        producer.send(topic, b"replicated").result(_SLOW_S)
    _leave_the_leader_alone(cluster, topic)
    # A broker tells of its cluster a moment before it acts on it itself. What is too large shows
    # when it does: it is never written, and refused for its size only if there are enough replicas.
    wait_for(
        lambda: ErrorCode.NOT_ENOUGH_REPLICAS in _refusals(cluster, topic, bytes(2_000)),
        "the leader knows that it is alone",
        _SLOW_S,
    )
    assert ErrorCode.NOT_ENOUGH_REPLICAS in _refusals(cluster, topic, b"refused")
    for broker_id in BROKER_IDS:
        if not cluster.brokers[broker_id].is_running:
            cluster.brokers[broker_id].start()
    cluster.wait_in_sync(topic, 0, 3)
    assert values_of(read_all(cluster.bootstrap, topic)) == [b"replicated"]
