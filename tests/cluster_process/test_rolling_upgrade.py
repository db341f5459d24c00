"""From the last release to this one, broker by broker, while clients write and read.

Both releases serve in one cluster meanwhile, each of them as the controller too. In the end nothing
is lost, doubled or out of order, all replicas are the same, and nobody has met what he does not
know.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headwater import Consumer, KafkaError, Producer, TopicPartition
from headwater.client.admin import AdminOperations, ReassignmentOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.brokers.headwater_cluster import CLUSTER_SETTINGS, HeadwaterCluster
from tests.support.brokers.last_release import command_prefix, take_out
from tests.support.brokers.three_brokers import BROKER_IDS, SLOW_S
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.logs.replica_files import replica_faults
from tests.support.traffic.traffic import PARTITION_COUNT, Traffic
from tests.support.traffic.transaction_ledger import TransactionLedger

pytestmark = pytest.mark.full

#: Each changes the controller; one of several brokers is elected, as chance has it.
_CHANGES_MAX = 20


class UpgradedCluster:
    """Three brokers of the last release, to be started again with this one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        prefix = command_prefix(take_out(directory / "last-release"))
        self.cluster = HeadwaterCluster(
            directory,
            shared_zookeeper().address + fresh_chroot(),
            command_prefixes=dict.fromkeys(BROKER_IDS, prefix),
        )
        self.new: set[int] = set()

    @property
    def old(self) -> list[int]:
        return [each for each in BROKER_IDS if each not in self.new]

    def upgrade(self, broker_id: int) -> None:
        before = self.cluster.brokers[broker_id]
        assert before.stop() == 0, before.tail()
        self.cluster.brokers[broker_id] = after = BrokerProcess(
            before.directory,
            settings=CLUSTER_SETTINGS,
            broker_id=broker_id,
            port=before.port,
            arguments=("--zookeeper", self.cluster.zookeeper, "--log-level", "info"),
            start_timeout_s=60.0,
        )
        after.start()
        self.new.add(broker_id)
        self.cluster.heal()

    def wait_calm(self, topics: Sequence[str]) -> None:
        """As the notes on upgrading say: all replicas are in sync before the next step."""
        for topic in topics:
            self.cluster.wait_settled(topic, PARTITION_COUNT)

    def have_controller(self, wanted: Sequence[int], topics: Sequence[str]) -> None:
        """Restart whoever is the controller, with the release it has, until it is one of these."""
        for _ in range(_CHANGES_MAX):
            controller = self.cluster.controller_node()
            [broker_id] = self.cluster.broker_ids_of([controller])
            if broker_id in wanted:
                return
            controller.stop()
            controller.start()
            self.cluster.heal()
            self.wait_calm(topics)
        raise AssertionError(f"none of {wanted} became the controller")

    def move(self, topic: str, replicas: Sequence[int]) -> None:
        """Give the partitions of a topic other replicas, and wait for it."""
        moves = {TopicPartition(topic, number): replicas for number in range(PARTITION_COUNT)}

        async def begin(connection: ClusterConnection) -> None:
            await ReassignmentOperations(connection).alter_partition_reassignments(moves)

        def is_done() -> bool:
            found = [self.cluster.partition(topic, number) for number in range(PARTITION_COUNT)]
            return all(
                tuple(each.replicas) == tuple(replicas) and set(each.isr) == set(replicas)
                for each in found
            )

        self.cluster.ask(begin)
        wait_until(is_done, f"{topic} lies on {replicas}", SLOW_S)

    def outputs(self) -> str:
        return "".join(
            broker.output.read_text(errors="replace") for broker in self.cluster.brokers.values()
        )


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[UpgradedCluster]:
    upgraded = UpgradedCluster(tmp_path / "cluster")
    with upgraded.cluster:
        yield upgraded


def _found(bootstrap: str, topic: str) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {number: [] for number in range(PARTITION_COUNT)}
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        partitions = [TopicPartition(topic, number) for number in found]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for record in consumer.poll(0.5):
                found[record.partition].append(record.value or b"")
    return found


def test_nothing_is_lost_on_the_way_from_the_last_release(
    upgraded: UpgradedCluster, tmp_path: Path
) -> None:
    cluster = upgraded.cluster
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    topics = [cluster.create_topic(name, PARTITION_COUNT) for name in ("orders", "payments")]
    ledger = TransactionLedger("payments", PARTITION_COUNT, seed)
    with Producer(bootstrap_servers=cluster.bootstrap, transactional_id="payments") as producer:
        producer.init_transactions()

        def work(traffic: Traffic) -> None:
            """What people do with a cluster, whoever serves and leads it."""
            upgraded.wait_calm(topics)
            for _ in range(10):
                ledger.transact(producer)
            name = f"topic-{len(topics)}"
            topics.append(cluster.create_topic(name, PARTITION_COUNT, {"retention.ms": "3600000"}))
            traffic.wait_for_progress()

        with Traffic(cluster, "orders", "own-client", tmp_path) as traffic:
            work(traffic)
            # A broker of this release under a controller of the last one.
            upgraded.have_controller([2, 3], topics)
            upgraded.upgrade(1)
            work(traffic)
            upgraded.have_controller([2, 3], topics)

            async def move(connection: ClusterConnection) -> None:
                to = {TopicPartition("payments", 0): [3, 2, 1]}
                await ReassignmentOperations(connection).alter_partition_reassignments(to)

            # What it does not know it refuses, and whoever asked hears of it soon.
            with pytest.raises(KafkaError):
                cluster.ask(move, [1])
            work(traffic)
            # A controller of this release with brokers of the last one.
            upgraded.have_controller([1], topics)
            work(traffic)
            upgraded.move("payments", (1, 2))
            for _ in range(10):
                ledger.transact(producer)
            upgraded.move("payments", (3, 1, 2))
            work(traffic)
            for broker_id in upgraded.old:
                upgraded.upgrade(broker_id)
                work(traffic)
            upgraded.move("orders", (2, 3, 1))
            work(traffic)
            traffic.finish()
    assert ledger.faults(_found(cluster.bootstrap, "payments")) == []
    for topic in topics:
        upgraded.wait_calm([topic])
        assert replica_faults(cluster, topic, PARTITION_COUNT) == []

    async def configs(connection: ClusterConnection) -> set[str]:
        listed = await AdminOperations(connection).list_topics()
        return {each.name for each in listed}

    assert set(topics) <= cluster.ask(configs)
    told = upgraded.outputs()
    assert "Traceback" not in told
    assert "It is left out" not in told
    # Nobody is asked for what only the other release has.
    assert "there is no API with key" not in told


def test_going_back_before_the_last_step(upgraded: UpgradedCluster, tmp_path: Path) -> None:
    """A broker that was upgraded is started with the last release again."""
    cluster = upgraded.cluster
    cluster.create_topic("orders", PARTITION_COUNT)
    with Traffic(cluster, "orders", "own-client", tmp_path) as traffic:
        old = cluster.brokers[1]
        upgraded.upgrade(1)
        upgraded.wait_calm(["orders"])
        traffic.wait_for_progress()
        assert cluster.brokers[1].stop() == 0
        cluster.brokers[1] = old
        old.start()
        cluster.heal()
        upgraded.wait_calm(["orders"])
        traffic.wait_for_progress()
        traffic.finish()
    assert "Traceback" not in upgraded.outputs()
