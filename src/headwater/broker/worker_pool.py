"""Threads for what waits for the disk.

The event loop never waits: fsyncs, making and deleting files, and reading cold data run here.
`num.io.threads` sizes the pool that requests wait for, `background.threads` the one for
maintenance, so that deleting a large topic does not hold up an acknowledgement. Both may be changed
while the broker runs: a pool of the new size takes over, and the old one finishes what it has.

How busy the threads were is counted, for `RequestHandlerAvgIdlePercent`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class WorkerPool:
    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        #: Seconds that all threads together have worked.
        self.busy_s = 0.0
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` in a thread and wait for it; what it raises is raised here."""
        loop = asyncio.get_running_loop()
        # In the context of whoever asks, so that what a thread logs is known for that broker's.
        timed = partial(copy_context().run, _timed, work)
        result, worked_s = await loop.run_in_executor(self._executor, timed)
        # In a line of its own: others have added theirs while this one waited.
        self.busy_s += worked_s
        return result

    def resize(self, size: int) -> None:
        """Use `size` threads from now on."""
        if size != self.size:
            replaced, self._executor = (
                self._executor,
                ThreadPoolExecutor(size, thread_name_prefix=self.name),
            )
            self.size = size
            replaced.shutdown(wait=False)

    def close(self) -> None:
        """Finish what is under way, and end the threads."""
        self._executor.shutdown(wait=True)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started_s = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started_s
