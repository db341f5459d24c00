"""Watches how busy a broker's event loop and its worker threads are.

On one loop, Kafka's NetworkProcessorAvgIdlePercent is the loop's idle share, and
RequestHandlerAvgIdlePercent that of the threads of `num.io.threads`. Both are looked at every few
seconds, so that the share of the last minute is known whenever somebody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from headwater.broker.metrics.idle_share import IdleShare, loop_busy_s

SAMPLE_INTERVAL_S: Final = 5.0


class Workers(Protocol):
    """Threads that count how long they have worked."""

    size: int
    busy_s: float


class LoadMeter:
    """Samples from `start` to `stop`; its owner is the broker, on the loop that is watched."""

    def __init__(self, workers: Workers | None, busy_s: Callable[[], float] = loop_busy_s) -> None:
        self._workers = workers
        self._busy_s = busy_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_share = IdleShare()
        self._worker_share = IdleShare()
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sample()

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    @property
    def loop_idle(self) -> float:
        """The loop's idle share, from 0 to 1."""
        if self._loop is None:
            return 1.0
        return self._loop_share.share(self._loop.time(), self._busy_s())

    @property
    def workers_idle(self) -> float:
        """The worker threads' idle share, from 0 to 1."""
        if self._loop is None or self._workers is None:
            return 1.0
        workers = self._workers
        return self._worker_share.share(self._loop.time(), workers.busy_s, workers.size)

    def _sample(self) -> None:
        if self._loop is None:
            return
        now_s = self._loop.time()
        self._loop_share.sample(now_s, self._busy_s())
        if self._workers is not None:
            self._worker_share.sample(now_s, self._workers.busy_s)
        self._next = self._loop.call_later(SAMPLE_INTERVAL_S, self._sample)
