"""A transactional producer at work while something happens to a cluster.

    with Transactions(cluster, "payments", 3, seed) as transactions:
        cluster.brokers[leader].kill()
        transactions.wait_for_more()
    transactions.check()

Each transaction is there as a whole or not at all, and what is there stands in the order in which
it was written, each record once.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from headwater import Producer
from headwater.testing.broker_process import wait_until
from tests.support.brokers.three_brokers import SLOW_S, ThreeBrokers
from tests.support.traffic.transaction_ledger import TransactionLedger
from tests.support.values.whole_topic import read_topic

_PAUSE_S: Final = 0.02


class Transactions:
    """A thread; one transaction after the other."""

    def __init__(self, cluster: ThreeBrokers, topic: str, partition_count: int, seed: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partition_count = partition_count
        self._ledger = TransactionLedger(topic, partition_count, seed)
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="transactions")

    def wait_for_more(self, count: int = 10) -> None:
        """Until so many more than now were committed."""
        goal = len(self._ledger.committed) + count
        wait_until(
            lambda: len(self._ledger.committed) >= goal or self._error is not None,
            "more transactions",
            SLOW_S,
        )

    def check(self) -> None:
        found = read_topic(self._cluster.bootstrap, self._topic, self._partition_count)
        assert self._ledger.faults(found) == []

    def _run(self) -> None:
        try:
            with Producer(
                bootstrap_servers=self._cluster.bootstrap, transactional_id=self._topic
            ) as producer:
                producer.init_transactions()
                while not self._is_over.is_set():
                    self._ledger.transact(producer)
                    time.sleep(_PAUSE_S)
        except BaseException as error:
            self._error = error

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
