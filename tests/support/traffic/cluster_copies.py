"""Copies from topic to topic in transactions, each record once, in a cluster that loses brokers.

A `ClusterCopy` has a source, a target, and copiers of one client in processes of their own, which
are started again whenever they end. See `transactions.copier`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from headwater import KafkaError, Producer
from headwater.client.admin import AdminOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.java.processes import kill_process, start_process
from tests.support.brokers.three_brokers import SLOW_S, ThreeBrokers
from tests.support.kafka.node import require_apache_kafka
from tests.support.other_clients.groups.java import COPIER_CLASS
from tests.support.other_clients.transactions.copier import MARK, Copier
from tests.support.other_clients.users import read_all

PARTITION_COUNT = 2
RECORDS_PER_ROUND = 40
#: How many copiers of each client share the work. aiokafka does not tell the broker which member
#: its offsets come from, so a second one could commit what is no longer its own.
COPIER_COUNTS = {"own-client": 2, "confluent-kafka": 2, "kafka-python": 1, "aiokafka": 1, "java": 2}
POLL_INTERVAL_S = 0.1


class ClusterCopy:
    """One client's copy, and how far its group has come."""

    def __init__(self, client: str, cluster: ThreeBrokers, name: str, mark: bytes = MARK) -> None:
        """`mark` is what the client's copiers put before each value."""
        self.client, self.group = client, f"{name}-group"
        self.source = cluster.create_topic(f"{name}-source", PARTITION_COUNT)
        self.target = cluster.create_topic(f"{name}-target", PARTITION_COUNT)
        self.identities = [f"{name}-{number}" for number in range(COPIER_COUNTS[client])]
        self.mark = mark
        self.written = 0
        self._cluster = cluster

    def copiers(self, directory: Path) -> list[Copier]:
        return [
            Copier(
                self.client,
                self._cluster.bootstrap,
                self.group,
                self.source,
                self.target,
                identity,
                directory / f"{identity}.txt",
            )
            for identity in self.identities
        ]

    def write(self, count: int = RECORDS_PER_ROUND) -> None:
        with Producer(bootstrap_servers=self._cluster.bootstrap) as producer:
            for number in range(self.written, self.written + count):
                producer.send(self.source, b"%d" % number, partition=number % PARTITION_COUNT)
            producer.flush(SLOW_S)
        self.written += count

    def copied(self) -> int:
        """How many records the group has committed; 0 while nobody can say."""

        async def look(connection: ClusterConnection) -> int:
            operations = AdminOperations(connection)
            listed = await operations.list_group_offsets([self.group], require_stable=True)
            found = listed[self.group]
            return 0 if isinstance(found, KafkaError) else sum(at.offset for at in found.values())

        try:
            return self._cluster.ask(look)
        except (KafkaError, OSError, TimeoutError):
            return 0

    def faults(self) -> list[str]:
        """What is wrong with the target: it has each record once, in order."""
        records = read_all(
            self._cluster.bootstrap, self.target, PARTITION_COUNT, isolation_level="read_committed"
        )
        faults = []
        for partition in range(PARTITION_COUNT):
            found = [each.value for each in records if each.partition == partition]
            wanted = [
                self.mark + b"%d" % n for n in range(partition, self.written, PARTITION_COUNT)
            ]
            if found != wanted:
                faults.append(
                    f"{self.client}, partition {partition}: {len(found)} records for "
                    f"{len(wanted)}; missing {sorted(set(wanted) - set(filter(None, found)))[:3]}"
                )
        return faults


class JavaCopier:
    """Apache's TransactionalMessageCopier for one partition; started again until it has succeeded.

    It copies what is there when it starts, and aborts some transactions on purpose.
    """

    def __init__(
        self, bootstrap: str, copy: ClusterCopy, partition: int, identity: str, log: Path
    ) -> None:
        self.log = log
        kafka = require_apache_kafka()
        flags = ("-Xmx128m", *kafka.quick_start_flags)
        self._command = kafka.command(
            COPIER_CLASS,
            *("--broker-list", bootstrap, "--consumer-group", copy.group),
            *("--input-topic", copy.source, "--input-partition", str(partition)),
            *("--output-topic", copy.target, "--transactional-id", identity),
            *("--transaction-size", "100", "--enable-random-aborts", "--use-group-metadata"),
            jvm_flags=flags,
        )
        self._process = self._start()

    def keep_up(self) -> None:
        """Start it again if it has failed."""
        if self._process.poll() not in (None, 0):
            self.kill()
            self._process = self._start()

    def kill(self) -> None:
        kill_process(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return start_process(self._command, stdout=log, stderr=log)


class AnyCopier(Protocol):
    @property
    def log(self) -> Path: ...
    def keep_up(self) -> None: ...


def wait_for_copies(
    copies: Sequence[ClusterCopy], copiers: Sequence[AnyCopier], share: float, timeout_s: float
) -> None:
    """Until of each copy this share is done, while copiers that have ended are started again."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        for each in copiers:
            each.keep_up()
        done = {each.client: each.copied() for each in copies}
        if all(done[each.client] >= share * each.written for each in copies):
            return
        assert time.monotonic() < deadline_s, (
            f"not within {timeout_s:g} s: {share:.0%} of {copies[0].written} are copied: {done}\n"
            + "\n".join(f"-- {each.log.name}:\n{each.log.read_text()[-600:]}" for each in copiers)
        )
        time.sleep(POLL_INTERVAL_S)
