"""Three brokers in processes of their own, Headwater's or Apache's: what a test may do to them.

    with cluster:
        topic = cluster.create_topic("orders", 3)
        leader = cluster.leader_of(topic, 0)
        with cluster.paused(cluster.nodes[leader]):
            cluster.wait_for_leader(topic, 0, cluster.others(leader))

A test that is written against this class runs on both clusters, and that it passes on Apache Kafka
shows that it asks for what Kafka does. `HeadwaterCluster` and `KafkaCluster` say what the processes
are and which of them the controller is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from headwater.base.errors import KafkaError
from headwater.client.admin import AdminOperations, NewTopic, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.connection.coordinators import CoordinatorKind, find_coordinators
from headwater.testing.broker_process import wait_until

BROKER_IDS = (1, 2, 3)
#: What both kinds of cluster are started with.
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    # A follower that does not follow leaves the set soon, and leaders stay where a test has them.
    "replica.lag.time.max.ms": "3000",
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
#: A cluster in which a leader was just elected takes its time, on a busy machine a long one.
SLOW_S = 60.0
#: Of a question that is asked again anyway.
ANSWER_S = 10.0

Result = TypeVar("Result")


class Node(Protocol):
    """A process that can be ended and started again on the same data and address."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> None: ...
    def stop(self) -> object: ...
    def kill(self) -> None: ...


class ThreeBrokers(ABC):
    """Brokers 1 to 3, running while it is entered. See the module's text."""

    def __init__(self) -> None:
        #: Those which nobody can reach just now, though they run.
        self._away: set[int] = set()

    # -- what each kind of cluster says of itself --------------------------------------------------

    @property
    @abstractmethod
    def nodes(self) -> Mapping[int, Node]:
        """The brokers by id."""

    @property
    @abstractmethod
    def session_s(self) -> float:
        """After how long a broker that is silent counts as gone."""

    @abstractmethod
    def controller_node(self) -> Node:
        """The process that is the controller now."""

    @abstractmethod
    def data_dir(self, broker_id: int) -> Path:
        """Where the broker has its partitions."""

    def replica_dir(self, broker_id: int, partition: str) -> Path:
        """Where the broker has one of them, or would have it."""
        return self.data_dir(broker_id) / partition

    @abstractmethod
    def logs(self, lines: int = 60) -> str:
        """What the processes said last."""

    def extra_nodes(self) -> Iterable[Node]:
        """Processes beside the brokers, which start and end with them."""
        return ()

    # -- life --------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        nodes = [*self.extra_nodes(), *self.nodes.values()]
        try:
            with ThreadPoolExecutor(len(nodes)) as threads:
                list(threads.map(lambda node: node.start(), nodes))
            self.wait_for_brokers(BROKER_IDS)
        except BaseException:
            self.kill_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Nobody will look at what they would save.
        self.kill_all()

    def kill_all(self) -> None:
        for node in [*self.nodes.values(), *self.extra_nodes()]:
            node.kill()

    def heal(self) -> None:
        """Start what does not run, and wait until all brokers are known."""
        down = [each for each in [*self.extra_nodes(), *self.nodes.values()] if not each.is_running]
        if down:
            with ThreadPoolExecutor(len(down)) as threads:
                # A process that ended by itself is collected first.
                list(threads.map(lambda node: (node.kill(), node.start()), down))
        self.wait_for_brokers(BROKER_IDS)

    # -- harm --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def paused(self, node: Node) -> Iterator[None]:
        """The process does nothing, and does not know it."""
        pid = node.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            with self.away(self.broker_ids_of([node])):
                yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def away(self, broker_ids: Iterable[int]) -> Iterator[None]:
        """Nobody asks these brokers anything."""
        added = set(broker_ids) - self._away
        self._away |= added
        try:
            yield
        finally:
            self._away -= added

    # -- what is where -----------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """All brokers, whether they run or not."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    def others(self, *broker_ids: int) -> list[int]:
        return [each for each in BROKER_IDS if each not in broker_ids]

    def broker_ids_of(self, nodes: Iterable[Node]) -> list[int]:
        """Which brokers these are; a controller that is none has no number here."""
        return [broker_id for broker_id, node in self.nodes.items() if node in list(nodes)]

    def partition(
        self, topic: str, partition: int, asked: Iterable[int] = BROKER_IDS
    ) -> PartitionInfo:
        """What one of the brokers that are `asked` says of a partition."""

        async def look(connection: ClusterConnection) -> PartitionInfo:
            await connection.refresh([topic])
            return (await connection.find_topic(topic)).partition(partition)

        return self.ask(look, asked)

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

        return self.ask(look)

    # -- changes, and waiting for them -------------------------------------------------------------

    def create_topic(
        self, name: str, partition_count: int = 1, configs: dict[str, str] | None = None
    ) -> str:
        """Three replicas each, and served when this returns."""

        async def create(connection: ClusterConnection) -> None:
            new = NewTopic(
                name, partition_count=partition_count, replication_factor=3, configs=configs or {}
            )
            require_all(await AdminOperations(connection).create_topics([new]))

        self.ask(create)
        for number in range(partition_count):
            self.wait_in_sync(name, number, 3)
        return name

    def delete_topics(self, names: Iterable[str]) -> None:
        async def delete(connection: ClusterConnection) -> None:
            require_all(await AdminOperations(connection).delete_topics(list(names)))

        self.ask(delete)

    def wait_in_sync(self, topic: str, partition: int, count: int) -> None:
        """Until so many replicas of the partition are in sync."""

        def in_sync() -> bool:
            found = self.partition(topic, partition)
            return found.has_leader and len(found.isr) == count

        self._wait(in_sync, f"{topic}-{partition} has {count} replicas in sync")

    def wait_for_leader(self, topic: str, partition: int, among: Iterable[int]) -> int:
        """Until one of these brokers leads the partition; which one."""
        wanted = set(among)
        self._wait(
            lambda: self.leader_of(topic, partition) in wanted,
            f"one of {wanted} leads {topic}-{partition}",
        )
        return self.leader_of(topic, partition)

    def wait_settled(self, topic: str, partition_count: int) -> None:
        """Until all brokers say the same of the topic, and all its replicas are in sync.

        A broker that comes to itself after it was cut off may take itself for a leader for a while.
        """

        def settled() -> bool:
            for number in range(partition_count):
                said = [self.partition(topic, number, [each]) for each in BROKER_IDS]
                heads = {(each.leader_id, each.leader_epoch, frozenset(each.isr)) for each in said}
                if len(heads) > 1 or set(said[0].isr) != set(BROKER_IDS):
                    return False
            return True

        self._wait(settled, f"all brokers agree on {topic}")

    def wait_for_brokers(self, broker_ids: Iterable[int]) -> None:
        """Until the brokers that can be asked know these brokers and no others."""
        wanted = set(broker_ids)

        async def known(connection: ClusterConnection) -> set[int]:
            await connection.refresh(())
            return set(connection.metadata.brokers)

        def all_know() -> bool:
            running = [each for each, node in self.nodes.items() if node.is_running]
            asked = [each for each in running if each not in self._away]
            return all(self.ask(known, [each]) == wanted for each in asked)

        self._wait(all_know, f"the brokers are {wanted}")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            # In the midst of a failure nobody may know a topic, or answer at all.
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                return condition()
            return False

        try:
            wait_until(holds, what, SLOW_S)
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{self.logs()}") from None

    def ask(
        self,
        work: Callable[[ClusterConnection], Awaitable[Result]],
        asked: Iterable[int] = BROKER_IDS,
    ) -> Result:
        """Ask one of these brokers, which can be reached; what it says may be out of date."""
        among = set(asked) - self._away

        async def ask() -> Result:
            reachable = [
                node.bootstrap
                for broker_id, node in self.nodes.items()
                if node.is_running and broker_id in among
            ]
            async with ClusterConnection(
                ",".join(reachable), request_timeout_s=ANSWER_S
            ) as connection:
                return await work(connection)

        return asyncio.run(ask())
