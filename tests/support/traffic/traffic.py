"""A writer and a group of readers of one client, at work while something happens to a cluster.

    with Traffic(cluster, topic, "confluent-kafka", directory) as traffic:
        hard_bounce(cluster, topic, Victim.LEADER)
        traffic.wait_for_progress()
        traffic.finish()

`finish` asks for all that is promised of a replicated topic: nothing acknowledged is lost, nothing
is doubled or out of order, the group has read everything and committed how far it is, nobody ever
saw a record that was not there later, and all replicas are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.base.errors import KafkaError
from headwater.client.admin import AdminOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from tests.support.brokers.three_brokers import SLOW_S, ThreeBrokers
from tests.support.logs.replica_files import replica_faults
from tests.support.other_clients.groups.known import MEMBERS_BY_NAME
from tests.support.other_clients.users import read_all
from tests.support.traffic.clients import SENDING_BY_NAME
from tests.support.traffic.readers import Readers, TrafficReaders, VerifiableReaders
from tests.support.traffic.writers import TrafficWriter, VerifiableWriter, Writer

#: Apache's tools beside the clients in Python.
VERIFIABLE = "verifiable"
CLIENTS = [*SENDING_BY_NAME, VERIFIABLE]
PARTITION_COUNT = 3
PROGRESS_COUNT = 60
POLL_INTERVAL_S = 0.02


class Traffic:
    """See the module's text."""

    def __init__(
        self,
        cluster: ThreeBrokers,
        topic: str,
        client: str,
        directory: Path,
        *,
        partition_count: int = PARTITION_COUNT,
        is_idempotent: bool = True,
        is_read: bool = True,
    ) -> None:
        """Without `is_read` there is no group, for when nobody can commit."""
        self.topic = topic
        self.group = f"{topic}-group"
        self._cluster = cluster
        self._partition_count = partition_count
        self._is_idempotent = is_idempotent
        self._is_read = is_read
        self._stack = ExitStack()
        bootstrap = cluster.bootstrap
        if client == VERIFIABLE:
            self._readers: Readers = VerifiableReaders(bootstrap, self.group, topic, directory)
            self.writer: Writer = VerifiableWriter(bootstrap, topic, directory)
        else:
            self._readers = TrafficReaders(MEMBERS_BY_NAME[client], bootstrap, self.group, topic)
            sending = SENDING_BY_NAME[client](bootstrap, is_idempotent=is_idempotent)
            self.writer = TrafficWriter(sending, topic, partition_count)

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self.writer)
            if self._is_read:
                self._stack.enter_context(self._readers)
            self.wait_for_progress()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            print(self._cluster.logs())
        self._stack.close()

    def wait_for_progress(self, count: int = PROGRESS_COUNT, timeout_s: float = SLOW_S) -> float:
        """Until so many more were acknowledged, and then as many more read; how long it took."""
        began_s = time.monotonic()
        acknowledged = self.writer.ledger.acknowledged
        goal = len(acknowledged) + count
        self._wait(lambda: len(acknowledged) >= goal, "more is acknowledged", timeout_s)
        if self._is_read:
            goal = len(self._readers.seen) + count
            self._wait(lambda: len(self._readers.seen) >= goal, "more is read", timeout_s)
        return time.monotonic() - began_s

    def finish(self) -> None:
        """End the writing and check everything; all three brokers must run."""
        self.writer.finish()
        ledger = self.writer.ledger
        assert ledger.refused == [], f"{len(ledger.refused)} records: {ledger.refused[:3]}"
        count = self._partition_count
        self._cluster.wait_settled(self.topic, count)
        records = read_all(self._cluster.bootstrap, self.topic, count)
        found: dict[int, list[int]] = {number: [] for number in range(count)}
        content: dict[tuple[int, int], int] = {}
        for record in records:
            number = int(record.value or b"-1")
            found[record.partition].append(number)
            content[record.partition, record.offset] = number
        faults = ledger.faults(found, is_idempotent=self._is_idempotent)
        assert faults == [], f"{len(faults)} faults: {faults[:10]}\n{self._cluster.logs()}"
        # The sequence of numbers has no holes, if nobody refused any.
        assert {number for some in found.values() for number in some} == set(
            range(ledger.sent_count)
        )
        if self._is_read:
            self._check_readers(content)
        assert replica_faults(self._cluster, self.topic, count) == []

    def _check_readers(self, content: dict[tuple[int, int], int]) -> None:
        seen = self._readers.seen
        self._wait(
            lambda: len(self._readers.seen) >= len(content), "the group has read all", SLOW_S
        )
        assert seen.conflicts == []
        assert seen.numbers == content
        ends = {
            partition: max(offset for number, offset in content if number == partition) + 1
            for partition in {number for number, _ in content}
        }
        self._wait(lambda: self._committed() == ends, f"the group has committed {ends}", SLOW_S)

    def _committed(self) -> dict[int, int]:
        async def look(connection: ClusterConnection) -> dict[int, int]:
            found = (await AdminOperations(connection).list_group_offsets([self.group]))[self.group]
            if isinstance(found, KafkaError):
                raise found
            return {each.partition: committed.offset for each, committed in found.items()}

        return self._cluster.ask(look)

    def _wait(self, condition: Callable[[], bool], what: str, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            self.writer.check()
            self._readers.check()
            if time.monotonic() > deadline_s:
                ledger = self.writer.ledger
                raise AssertionError(
                    f"not within {timeout_s:g} s: {what}; {ledger.sent_count} sent, "
                    f"{len(ledger.acknowledged)} acknowledged, {ledger.refused[:3]} refused, "
                    f"{len(self._readers.seen)} read"
                )
            time.sleep(POLL_INTERVAL_S)
