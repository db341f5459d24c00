"""Three Apache brokers: leaders and coordinators move, brokers go and come back elsewhere.

The clients follow, and nothing that idempotence protects is lost, doubled or out of order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest

from headwater import Consumer, KafkaError, Producer, TopicPartition
from headwater.base.errors import ErrorCode
from tests.support.kafka.cluster import BROKER_IDS, KafkaCluster
from tests.support.other_clients.users import (
    Poller,
    numbers,
    partitions_of,
    read_all,
    shared_among,
    take,
    values_of,
    wait_for,
)
from tests.support.traffic.steady_writer import SteadyWriter

pytestmark = [pytest.mark.full, pytest.mark.kafka]

QUICK: Mapping[str, object] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 50,
}
#: A cluster in which a leader was just elected takes its time.
SLOW_S = 60.0
PROBE = b"probe"

_numbers = itertools.count(1)


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


@pytest.fixture
def topic(cluster: KafkaCluster) -> str:
    return cluster.create_topic(f"topic-{next(_numbers)}", 3)


def member(
    cluster: KafkaCluster, group: str, topic: str, settings: Mapping[str, object] | None = None
) -> Poller:
    consumer = Consumer(
        {**QUICK, **(settings or {})},
        bootstrap_servers=cluster.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        metadata_max_age_ms=2_000,
    )
    consumer.subscribe([topic])
    return Poller(consumer)


def test_leaders_die_under_a_producer(cluster: KafkaCluster, topic: str) -> None:
    with (
        Producer(
            QUICK, bootstrap_servers=cluster.bootstrap, linger_ms=1, batch_size=300
        ) as producer,
        SteadyWriter(producer, topic, 3) as writer,
    ):
        for _ in range(2):
            writer.wait_for_more()
            node = cluster.brokers[cluster.leader_of(topic, 0)]
            node.kill()
            writer.wait_for_more(timeout_s=SLOW_S)
            node.start()
            for partition in range(3):
                cluster.wait_in_sync(topic, partition, 3)
    writer.check(read_all(cluster.bootstrap, topic, 3))


def test_every_broker_comes_back_on_another_address(cluster: KafkaCluster, topic: str) -> None:
    """In the end none of the addresses that the clients began with is right any more."""
    reader = Consumer(
        QUICK,
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        metadata_max_age_ms=2_000,
    )
    reader.assign(partitions_of(topic, 3))
    polled = [Poller(reader), member(cluster, f"group-{topic}", topic)]
    try:
        with (
            Producer(
                QUICK, bootstrap_servers=cluster.bootstrap, metadata_max_age_ms=2_000, linger_ms=1
            ) as producer,
            SteadyWriter(producer, topic, 3) as writer,
        ):
            for broker_id in BROKER_IDS:
                writer.wait_for_more(timeout_s=SLOW_S)
                cluster.move_broker(broker_id)
                for partition in range(3):
                    cluster.wait_in_sync(topic, partition, 3)
            writer.wait_for_more(timeout_s=SLOW_S)
        total = sum(writer.counts.values())
        for each in polled:
            each.wait(lambda each: len(each.records) >= total, "all has come")
        writer.check(polled[0].records)
        found = {(record.partition, record.offset) for record in polled[1].records}
        assert len(found) == total
    finally:
        for each in polled:
            each.close()
    writer.check(read_all(cluster.bootstrap, topic, 3))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_groups_coordinator_dies(cluster: KafkaCluster, topic: str, protocol: str) -> None:
    group = f"group-{topic}"
    settings: dict[str, object] = {"group.protocol": protocol, "enable.auto.commit": False}
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 500
    members = [member(cluster, group, topic, settings) for _ in range(2)]
    partitions = partitions_of(topic, 3)
    try:
        wait_for(lambda: shared_among(members, partitions), "two share", SLOW_S)
        with (
            Producer(QUICK, bootstrap_servers=cluster.bootstrap, linger_ms=1) as producer,
            SteadyWriter(producer, topic, 3) as writer,
        ):
            writer.wait_for_more()
            node = cluster.brokers[cluster.coordinator_of_group(group)]
            node.kill()
            writer.wait_for_more(timeout_s=SLOW_S)
            wait_for(
                lambda: cluster.coordinator_of_group(group) != node.node_id,
                "another coordinates",
                SLOW_S,
            )
            writer.wait_for_more(timeout_s=SLOW_S)
        total = sum(writer.counts.values())

        def read() -> set[tuple[int, int]]:
            return {(r.partition, r.offset) for each in members for r in each.records}

        wait_for(lambda: len(read()) >= total, "all has come", SLOW_S)
        wait_for(lambda: shared_among(members, partitions), "two share again", SLOW_S)
        # Both can commit at the new coordinator, and what they commit is found there.
        for each in members:
            each.close(leaves=False)
        for each in members:
            each.consumer.commit(timeout_s=SLOW_S)
        committed = members[0].consumer.committed(partitions)
        assert {
            partition.partition: found.offset
            for partition, found in committed.items()
            if found is not None
        } == writer.counts
    finally:
        for each in members:
            each.close()


def test_the_transactions_coordinator_dies(cluster: KafkaCluster, topic: str) -> None:
    name = f"tx-{topic}"
    kept: list[bytes] = []
    with Producer(QUICK, bootstrap_servers=cluster.bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        for number, kills in enumerate([False, True, False, True]):
            producer.begin_transaction()
            value = b"%d" % number
            for partition in range(3):
                producer.send(topic, value, partition=partition)
            producer.flush(SLOW_S)
            if kills:
                node = cluster.brokers[cluster.coordinator_of_transactions(name)]
                node.kill()
                producer.commit_transaction()
                kept.append(value)
                node.start()
                for partition in range(3):
                    cluster.wait_in_sync(topic, partition, 3)
            else:
                producer.abort_transaction()
    for partition in range(3):
        records = read_all(cluster.bootstrap, topic, 3, isolation_level="read_committed")
        mine = [record for record in records if record.partition == partition]
        assert values_of(mine) == kept


def test_too_few_replicas_are_waited_for(cluster: KafkaCluster, topic: str) -> None:
    """acks=all and two replicas at least: while there is one, a write waits or is refused."""
    leader = cluster.leader_of(topic, 0)
    others = [broker_id for broker_id in BROKER_IDS if broker_id != leader]
    partition = TopicPartition(topic, 0)
    with (
        Producer(QUICK, bootstrap_servers=cluster.bootstrap) as patient,
        Producer(
            QUICK,
            bootstrap_servers=cluster.bootstrap,
            linger_ms=0,
            request_timeout_ms=1_000,
            delivery_timeout_ms=2_000,
        ) as hasty,
    ):
        patient.send(topic, b"0", partition=0).result(SLOW_S)
        hasty.send(topic, b"1", partition=0).result(SLOW_S)
        for broker_id in others:
            cluster.brokers[broker_id].kill()
        cluster.wait_in_sync(topic, 0, 1)
        # The leader may tell that it is alone before it acts like it.
        wait_for(lambda: _refuses(cluster, topic), "a leader that refuses records", SLOW_S)
        waiting = patient.send(topic, b"2", partition=0)
        with pytest.raises(KafkaError) as refused:
            hasty.send(topic, b"never", partition=0).result(SLOW_S)
        assert refused.value.code in (
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.NOT_ENOUGH_REPLICAS,
        )
        assert not waiting.done()
        cluster.brokers[others[0]].start()
        assert waiting.result(SLOW_S).partition == 0
        cluster.brokers[others[1]].start()
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        found: list[bytes | None] = []
        while b"2" not in found:
            found += values_of(take(consumer, 1, SLOW_S))
        assert [value for value in found if value != PROBE] == numbers(0, 3)


def _refuses(cluster: KafkaCluster, topic: str) -> bool:
    """Whether a leader refuses a record without writing it first."""
    with Producer(
        QUICK,
        bootstrap_servers=cluster.bootstrap,
        retries=0,
        enable_idempotence=False,
        linger_ms=0,
        request_timeout_ms=1_000,
        delivery_timeout_ms=2_000,
    ) as producer:
        try:
            producer.send(topic, PROBE, partition=0).result(SLOW_S)
        except KafkaError as refused:
            return refused.code is ErrorCode.NOT_ENOUGH_REPLICAS
    return False


def test_what_an_unclean_leader_lost_is_noticed(cluster: KafkaCluster) -> None:
    """A consumer that read records which are gone is told, instead of reading others silently."""
    topic = cluster.create_topic(
        f"topic-{next(_numbers)}",
        1,
        {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
    )
    partition = TopicPartition(topic, 0)
    first = cluster.leader_of(topic, 0)
    others = [broker_id for broker_id in BROKER_IDS if broker_id != first]
    with (
        Producer(QUICK, bootstrap_servers=cluster.bootstrap) as producer,
        Consumer(
            QUICK,
            bootstrap_servers=cluster.bootstrap,
            auto_offset_reset="none",
            metadata_max_age_ms=1_000,
        ) as consumer,
    ):
        for value in numbers(0, 10):
            producer.send(topic, value).result(SLOW_S)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        assert values_of(take(consumer, 10)) == numbers(0, 10)
        for broker_id in others:
            cluster.brokers[broker_id].kill()
        cluster.wait_in_sync(topic, 0, 1)
        for value in numbers(10, 20):
            producer.send(topic, value).result(SLOW_S)
        assert values_of(take(consumer, 10)) == numbers(10, 20)
        cluster.brokers[first].kill()
        for broker_id in others:
            cluster.brokers[broker_id].start()
        wait_for(lambda: cluster.leader_of(topic, 0) in others, "an unclean leader", SLOW_S)
        with pytest.raises(KafkaError) as lost:
            take(consumer, 1, SLOW_S)
        assert lost.type.__name__ in ("LogTruncationError", "InvalidOffsetError"), lost.value
        cluster.brokers[first].start()
        # The producer's last records are gone, too, and it does not write on behind the gap.
        for _ in range(2):
            with pytest.raises(KafkaError) as gap:
                producer.send(topic, b"never").result(SLOW_S)
            assert gap.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        with Producer(QUICK, bootstrap_servers=cluster.bootstrap) as renewed:
            assert renewed.send(topic, b"new").result(SLOW_S).offset == 10
        consumer.seek(partition, 10)
        assert values_of(take(consumer, 1, SLOW_S)) == [b"new"]
