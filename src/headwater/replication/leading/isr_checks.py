"""The periodic look at all partitions that this broker leads: who does not keep up any more?

A follower leaves the ISR at the latest one and a half times `replica.lag.time.max.ms` after it has
caught up for the last time, because every half of that time is looked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headwater.base.background_tasks import BackgroundTasks
from headwater.replication.partition.partitions import Partitions

_logger = logging.getLogger(__name__)


class IsrChecks:
    """Runs until it is closed; its owner is the broker."""

    def __init__(
        self, partitions: Partitions, lag_time_max_ms: Callable[[], int], tasks: BackgroundTasks
    ) -> None:
        self._partitions = partitions
        self._lag_time_max_ms = lag_time_max_ms
        self._tasks = tasks
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._tasks.start("ISR checks", self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._lag_time_max_ms() / 2 / 1000)
            try:
                self._partitions.check_isr()
            except Exception:
                _logger.exception("the in-sync replicas could not be checked")
