"""A cluster grows and shrinks under load while its brokers are killed.

Every partition is reassigned, the factor goes from 1 to 3, a fourth broker gets a share and is
emptied again by `headwater brokers drain`, and replicas move between the directories of brokers;
meanwhile brokers and the controller die at random moments. Nothing is lost, doubled or out of
order, transactions are whole, and in the end all replicas are the same bytes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import (
    AdminOperations,
    NewTopic,
    ReassignmentOperations,
    TopicOperations,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.cluster_process.conftest import HEADWATER_DISKS
from tests.support.brokers.headwater_cluster import CLUSTER_SETTINGS, HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS, SLOW_S, ThreeBrokers
from tests.support.logs.replica_files import replica_faults
from tests.support.tiers import rounds
from tests.support.traffic.directory_mover import DirectoryMover
from tests.support.traffic.killer import Killer
from tests.support.traffic.traffic import PARTITION_COUNT, Traffic
from tests.support.traffic.transactions import Transactions

_FOURTH = 4
#: A move waits for brokers that are away, and begins anew with each new controller.
_MOVE_S = 180.0

Layout = Mapping[int, Sequence[int]]
Result = TypeVar("Result")


@pytest.fixture
def running(cluster_of_kind: Callable[[str], ThreeBrokers]) -> ThreeBrokers:
    return cluster_of_kind(HEADWATER_DISKS)


class Mover:
    """Moves all partitions of topics, whoever is killed meanwhile."""

    def __init__(self, cluster: HeadwaterCluster, topics: Sequence[str]) -> None:
        self._cluster = cluster
        self._topics = topics

    def move(self, layout: Layout) -> None:
        """Ask until each partition has these replicas, and all of them are in sync."""
        deadline_s = time.monotonic() + _MOVE_S
        moves = {
            TopicPartition(topic, at): replicas
            for topic in self._topics
            for at, replicas in layout.items()
        }
        while not self._is_done(layout):
            if time.monotonic() > deadline_s:
                raise AssertionError(f"{layout} was not reached\n{self._cluster.logs()}")
            self._try(lambda connection: self._begin(connection, moves))
            time.sleep(0.2)

    async def _begin(
        self, connection: ClusterConnection, moves: Mapping[TopicPartition, Sequence[int]]
    ) -> None:
        operations = ReassignmentOperations(connection)
        moving = await operations.list_partition_reassignments(list(moves))
        if not moving:
            await operations.alter_partition_reassignments(moves)

    def _is_done(self, layout: Layout) -> bool:
        async def look(connection: ClusterConnection) -> bool:
            await connection.refresh(self._topics)
            topics = [await connection.find_topic(each) for each in self._topics]
            return all(
                list(each.replicas) == list(layout[each.partition])
                and set(each.isr) == set(layout[each.partition])
                for topic in topics
                for each in topic.partitions
            )

        return bool(self._try(look))

    def _try(self, work: Callable[[ClusterConnection], Awaitable[Result]]) -> Result | None:
        try:
            return self._cluster.ask(work)
        except (KafkaError, OSError, TimeoutError):
            return None  # Whoever was asked has just been killed.


def _drain(cluster: HeadwaterCluster, fourth: BrokerProcess) -> None:
    """`headwater brokers drain`, which is to end well whoever dies meanwhile."""
    brokers = ",".join(node.bootstrap for node in (*cluster.brokers.values(), fourth))
    command = [sys.executable, "-m", "headwater", "brokers", "drain", str(_FOURTH), "--yes"]
    command += ["--watch-seconds", "0", "--moves-per-broker", "2", "-b", brokers]
    try:
        drain = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_MOVE_S
        )
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{late.stdout!r}\n{late.stderr!r}\n{cluster.logs()}") from late
    print(drain.stderr)
    assert drain.returncode == 0, f"{drain.stdout}\n{drain.stderr}\n{cluster.logs()}"
    assert drain.stdout.endswith("may be stopped for good.\n")


def _grow_and_drain(
    cluster: HeadwaterCluster, mover: Mover, fourth: BrokerProcess, turn: int
) -> None:
    mover.move({number: [_FOURTH, *each[:2]] for number, each in _turned(turn).items()})
    _drain(cluster, fourth)


def _partitions_on(cluster: HeadwaterCluster, broker_id: int) -> list[TopicPartition]:
    async def look(connection: ClusterConnection) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, each.partition)
            for topic in await TopicOperations(connection).list_topics()
            for each in topic.partitions
            if broker_id in each.replicas
        ]

    return cluster.ask(look)


def _turned(by: int, count: int = 3) -> Layout:
    """Each partition on the three brokers, in another order for each number."""
    return {
        number: [BROKER_IDS[(number + by + at) % 3] for at in range(count)]
        for number in range(PARTITION_COUNT)
    }


def test_nothing_is_lost_while_everything_moves_and_brokers_die(
    cluster: HeadwaterCluster, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    topic, paid = topics = [f"moving-{seed}", f"paid-{seed}"]

    async def create(connection: ClusterConnection) -> None:
        new = [
            NewTopic(each, assignments=_turned(0, 1), configs={"min.insync.replicas": "1"})
            for each in topics
        ]
        require_all(await AdminOperations(connection).create_topics(new))

    cluster.ask(create)
    mover = Mover(cluster, topics)
    fourth = BrokerProcess(
        tmp_path / "broker-4",
        settings=CLUSTER_SETTINGS,
        broker_id=_FOURTH,
        arguments=("--zookeeper", cluster.zookeeper, "--log-level", "info"),
        start_timeout_s=60.0,
    )
    transactions = Transactions(cluster, paid, PARTITION_COUNT, seed)
    disks = DirectoryMover(cluster, topics, seed)
    with Traffic(cluster, topic, "own-client", tmp_path) as traffic, transactions, fourth:
        kill_count = rounds(small=2, full=12)
        deadline_s = time.monotonic() + _MOVE_S
        with Killer(cluster, seed) as killer, disks:
            for turn in range(rounds(small=1, full=4)):
                mover.move(_turned(turn, 1))
                mover.move(_turned(turn))
                mover.move(_turned(turn + 1))
                _grow_and_drain(cluster, mover, fourth, turn)
            # It takes a moment, in which nobody may be killed; so until enough have been.
            while killer.kill_count < kill_count and time.monotonic() < deadline_s:
                _grow_and_drain(cluster, mover, fourth, 1)
            killer.wait_for(kill_count)
            disks.wait_for(rounds(small=2, full=12))
        # It holds nothing: nobody says so any more, and it has deleted what it had.
        assert _partitions_on(cluster, _FOURTH) == []
        held = [fourth.data_dir / f"{each}-{number}" for each in topics for number in _turned(0)]
        wait_until(lambda: not any(each.exists() for each in held), "all is deleted", SLOW_S)
        assert fourth.stop() == 0, fourth.tail()
        cluster.heal()
        mover.move(_turned(0))
        traffic.wait_for_progress()
        transactions.wait_for_more()
        traffic.finish()
    transactions.check()
    assert replica_faults(cluster, paid, PARTITION_COUNT) == []
    cluster.delete_topics(topics)
