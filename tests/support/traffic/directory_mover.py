"""Has brokers move replicas between their directories, at random, while a test does something else.

    with DirectoryMover(cluster, ["orders"], seed) as mover:
        ...                                     # replicas change their disks
        mover.wait_for(5)                       # so many have arrived by then

A broker that is away, or has none of the partition, refuses; it is asked again another time.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import BrokerOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS, SLOW_S
from tests.support.traffic.traffic import PARTITION_COUNT

_PAUSE_S_MAX: Final = 0.5
_COPY_S_MAX: Final = 5.0


class DirectoryMover:
    """A thread; one replica moves at a time."""

    def __init__(self, cluster: HeadwaterCluster, topics: Sequence[str], seed: int) -> None:
        self.moved_count = 0
        self._cluster = cluster
        self._topics = topics
        self._chance = random.Random(seed)
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="directory mover")

    def wait_for(self, count: int) -> None:
        wait_until(
            lambda: self.moved_count >= count or self._error is not None,
            "replicas to move between directories",
            SLOW_S * 2,
        )

    def _run(self) -> None:
        try:
            while not self._is_over.wait(self._chance.uniform(0, _PAUSE_S_MAX)):
                broker_id = self._chance.choice(BROKER_IDS)
                number = self._chance.randrange(PARTITION_COUNT)
                name = TopicPartition(self._chance.choice(self._topics), number)
                held = self._cluster.replica_dir(broker_id, str(name))
                others = [
                    each for each in self._cluster.data_dirs(broker_id) if each != held.parent
                ]
                target = self._chance.choice(others)
                if self._begin(broker_id, name, target):
                    self._watch(target / str(name))
        except BaseException as error:
            self._error = error

    def _begin(self, broker_id: int, name: TopicPartition, target: Path) -> bool:
        async def begin(connection: ClusterConnection) -> None:
            await BrokerOperations(connection).alter_replica_log_dirs(
                broker_id, {name: str(target)}
            )

        try:
            self._cluster.ask(begin)
        except (KafkaError, OSError, TimeoutError):
            return False
        return True

    def _watch(self, directory: Path) -> None:
        """Whether it arrives; a broker that is killed meanwhile, or drained, gives it up."""
        deadline_s = time.monotonic() + _COPY_S_MAX
        while time.monotonic() < deadline_s and not self._is_over.is_set():
            if directory.exists():
                self.moved_count += 1
                return
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error
