"""Copies from topic to topic in transactions, each record once, in a cluster that loses brokers.

A `ClusterCopy` has a source, a target, and copiers of one client in processes of their own, which
are started again whenever they end. See `clients_transactions_copier`.
"""

from __future__ import annotations

import time
from pathlib import Path

from headwater import KafkaError, Producer
from headwater.client.admin import AdminOperations
from headwater.client.cluster_connection import ClusterConnection
from tests.support.client_users import read_all
from tests.support.clients_transactions_copier import MARK, Copier
from tests.support.three_brokers import SLOW_S, ThreeBrokers

PARTITION_COUNT = 2
RECORDS_PER_ROUND = 40
#: How many copiers of each client share the work. aiokafka does not tell the broker which member
#: its offsets come from, so a second one could commit what is no longer its own.
COPIER_COUNTS = {"own-client": 2, "confluent-kafka": 2, "kafka-python": 1, "aiokafka": 1}
POLL_INTERVAL_S = 0.1


class ClusterCopy:
    """One client's copy, and how far its group has come."""

    def __init__(self, client: str, cluster: ThreeBrokers, name: str) -> None:
        self.client, self.group = client, f"{name}-group"
        self.source = cluster.create_topic(f"{name}-source", PARTITION_COUNT)
        self.target = cluster.create_topic(f"{name}-target", PARTITION_COUNT)
        self.identities = [f"{name}-{number}" for number in range(COPIER_COUNTS[client])]
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

    def write(self) -> None:
        with Producer(bootstrap_servers=self._cluster.bootstrap) as producer:
            for number in range(self.written, self.written + RECORDS_PER_ROUND):
                producer.send(self.source, b"%d" % number, partition=number % PARTITION_COUNT)
            producer.flush(SLOW_S)
        self.written += RECORDS_PER_ROUND

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
            wanted = [MARK + b"%d" % n for n in range(partition, self.written, PARTITION_COUNT)]
            if found != wanted:
                faults.append(
                    f"{self.client}, partition {partition}: {len(found)} records for "
                    f"{len(wanted)}; missing {sorted(set(wanted) - set(filter(None, found)))[:3]}"
                )
        return faults


def wait_for_copies(
    copies: list[ClusterCopy], copiers: list[Copier], share: float, timeout_s: float
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
            f"not within {timeout_s:g} s: {share:.0%} of {copies[0].written} are copied: {done}"
        )
        time.sleep(POLL_INTERVAL_S)
