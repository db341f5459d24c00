"""Kills brokers of a cluster at random moments, the controller every second time, and starts them
again, while a test does something else with it.

    with Killer(cluster, seed) as killer:
        ...                                     # brokers come and go
        killer.wait_for(3)                      # so many have been killed by then
"""

from __future__ import annotations

import random
import threading
import time
from types import TracebackType
from typing import Final, Self

from headwater.base.errors import KafkaError
from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS, SLOW_S

#: Between two of them, and from the end of a broker to its next start.
_PAUSE_S_MAX: Final = 3.0
_AWAY_S_MAX: Final = 1.5


class Killer:
    """A thread; one broker is away at a time."""

    def __init__(self, cluster: HeadwaterCluster, seed: int) -> None:
        self.kill_count = 0
        self._cluster = cluster
        self._chance = random.Random(seed)
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="killer")

    def wait_for(self, count: int) -> None:
        wait_until(lambda: self.kill_count >= count or self._error is not None, "kills", SLOW_S * 4)

    def _run(self) -> None:
        try:
            while not self._is_over.wait(self._chance.uniform(0, _PAUSE_S_MAX)):
                broker = self._cluster.brokers[self._victim()]
                broker.kill()
                time.sleep(self._chance.uniform(0, _AWAY_S_MAX))
                broker.start()
                self.kill_count += 1
        except BaseException as error:
            self._error = error

    def _victim(self) -> int:
        if self.kill_count % 2:
            try:
                controller_id = self._cluster.controller_id()
            except (KafkaError, OSError, TimeoutError):
                controller_id = -1
            if controller_id in BROKER_IDS:
                return controller_id
        return self._chance.choice(BROKER_IDS)

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
