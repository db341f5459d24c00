"""Three Apache Kafka brokers and their controller, for what one broker cannot show.

    with KafkaCluster(directory) as cluster:
        topic = cluster.create_topic("orders", partitions=3)
        leader = cluster.leader_of(topic, 0)
        cluster.brokers[leader].kill()

Leaders and coordinators move when a broker goes. The controller is a process of its own, so that
any broker may. Each has a small heap, and a broker that is gone is noticed within two seconds.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from headwater.base.ids import topic_id_to_text
from headwater.client.admin import AdminOperations, NewTopic, require_all
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.cluster_metadata import PartitionInfo
from headwater.client.coordinators import CoordinatorKind, find_coordinators
from headwater.client.errors import UnknownTopicError
from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.apache_kafka.node import BROKER, CONTROLLER
from tests.support.broker_process import wait_until
from tests.support.kafka import SMALL_NODE_PROPERTIES, require_apache_kafka

BROKER_IDS = (1, 2, 3)
CONTROLLER_ID = 100

CLUSTER_PROPERTIES = SMALL_NODE_PROPERTIES | {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    # A follower that does not follow leaves the set soon, and leaders stay where a test has them.
    "replica.lag.time.max.ms": "3000",
    "auto.leader.rebalance.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "log.cleaner.enable": "false",
}
HEAP = "192m"

Result = TypeVar("Result")


class KafkaCluster:
    """Three brokers with ids 1 to 3, running while it is entered."""

    def __init__(self, directory: Path) -> None:
        kafka = require_apache_kafka()
        cluster_id = topic_id_to_text(uuid.uuid4())

        def node(node_id: int, role: str, voters: str | None) -> KafkaNode:
            return KafkaNode(
                directory / f"{role}-{node_id}",
                properties=CLUSTER_PROPERTIES,
                heap=HEAP,
                jvm_flags=kafka.quick_start_flags,
                start_timeout_s=120.0,
                kafka=kafka,
                node_id=node_id,
                roles=(role,),
                cluster_id=cluster_id,
                voters=voters,
            )

        self.controller = node(CONTROLLER_ID, CONTROLLER, None)
        voter = self.controller.voter
        self.brokers = {broker_id: node(broker_id, BROKER, voter) for broker_id in BROKER_IDS}

    @property
    def bootstrap(self) -> str:
        """All brokers, whether they run or not."""
        return ",".join(node.bootstrap for node in self.brokers.values())

    def __enter__(self) -> Self:
        nodes = [self.controller, *self.brokers.values()]
        try:
            with ThreadPoolExecutor(len(nodes)) as threads:
                list(threads.map(KafkaNode.start, nodes))
            self.wait_for_brokers(BROKER_IDS)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Nobody will look at what they would save.
        self._kill()

    def _kill(self) -> None:
        for node in [*self.brokers.values(), self.controller]:
            node.kill()

    # -- what is where -----------------------------------------------------------------------------

    def partition(self, topic: str, partition: int) -> PartitionInfo:
        async def look(connection: ClusterConnection) -> PartitionInfo:
            await connection.refresh([topic])
            return (await connection.find_topic(topic)).partition(partition)

        return self._ask(look)

    def leader_of(self, topic: str, partition: int) -> int:
        """The broker that leads the partition now; -1 if none does."""
        return self.partition(topic, partition).leader_id

    def coordinator_of_group(self, group_id: str) -> int:
        return self._coordinator(CoordinatorKind.GROUP, group_id)

    def coordinator_of_transactions(self, transactional_id: str) -> int:
        return self._coordinator(CoordinatorKind.TRANSACTION, transactional_id)

    def _coordinator(self, kind: CoordinatorKind, key: str) -> int:
        async def look(connection: ClusterConnection) -> int:
            async def attempt() -> int:
                found = (await find_coordinators(connection, kind, [key]))[key]
                if isinstance(found, Exception):
                    raise found
                return found

            return await connection.retrying(attempt, f"The coordinator of {key}")

        return self._ask(look)

    # -- changes -----------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partition_count: int = 1, configs: dict[str, str] | None = None
    ) -> str:
        """Three replicas each, and served when this returns."""

        async def create(connection: ClusterConnection) -> None:
            new = NewTopic(
                name, partition_count=partition_count, replication_factor=3, configs=configs or {}
            )
            require_all(await AdminOperations(connection).create_topics([new]))

        self._ask(create)
        for number in range(partition_count):
            self.wait_in_sync(name, number, 3)
        return name

    def wait_in_sync(self, topic: str, partition: int, count: int) -> None:
        """Until so many replicas of the partition are in sync."""

        def in_sync() -> bool:
            try:
                found = self.partition(topic, partition)
            except UnknownTopicError:
                # A broker may hear of a new topic a moment after another has created it.
                return False
            return found.has_leader and len(found.isr) == count

        wait_until(in_sync, f"{topic}-{partition} has {count} replicas in sync", 60.0)

    def wait_for_brokers(self, broker_ids: Iterable[int]) -> None:
        """Until the cluster knows these brokers and no others."""
        wanted = set(broker_ids)

        async def known(connection: ClusterConnection) -> set[int]:
            await connection.refresh(())
            return set(connection.metadata.brokers)

        wait_until(lambda: self._ask(known) == wanted, f"the brokers are {wanted}", 60.0)

    def move_broker(self, broker_id: int) -> None:
        """Stop the broker and bring it back on another address."""
        node = self.brokers[broker_id]
        node.stop()
        node.move()
        node.start()

    def _ask(self, work: Callable[[ClusterConnection], Awaitable[Result]]) -> Result:
        async def ask() -> Result:
            running = [node.bootstrap for node in self.brokers.values() if node.is_running]
            async with ClusterConnection(",".join(running)) as connection:
                return await work(connection)

        return asyncio.run(ask())
