"""Child processes that run compaction, so that it never takes the broker's time.

Compaction is Python code that computes for minutes: in a thread it would fight the event loop for
the interpreter. A child reads jobs from its standard input and writes to its standard output, for
each: the new segments one by one as they are done, then the result or the exception, all of them
pickled. It runs at the lowest priority and holds nothing between jobs, so one that is killed costs
the job that it had and nothing else. Children are started when there is work, and `close_idle`
ends those that have none, which gives their memory back.

(A pool of `concurrent.futures` would hand over a result only as a whole, and fail the jobs of all
its children when one dies.)

A child ends at once when its parent does, in whatever way: a thread of it waits at the other end of
its input, where the next job comes from.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import IO, TypeVar, cast

from headwater.base.clocks import SystemClock
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import (
    CleanedGroup,
    CompactionJob,
    CompactionResult,
)
from headwater.storage.compaction.io_throttle import IoThrottle
from headwater.storage.disk.files import DiskFiles

_LOWEST_PRIORITY = 19
_CHILD_CODE = "from headwater.storage.compaction.cleaner_process import run_child; run_child()"

Item = CleanedGroup | CompactionResult
Result = TypeVar("Result")


class CompactionInterruptedError(Exception):
    """The job did not run to its end, through no fault of the log: it can be tried again."""


class CleanerProcesses:
    """As many children as jobs run at the same time. Its owner is the cleaner's."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()

    async def run(self, job: CompactionJob) -> AsyncGenerator[Item, None]:
        """Run a job in a child; `CompactionInterruptedError` if that ends before the job does."""
        child = self._idle.pop() if self._idle else _Child()
        self._busy.add(child)
        is_done = False
        try:
            await child.begin(job)
            while not is_done:
                item = await child.next_item()
                is_done = isinstance(item, CompactionResult)
                if is_done:
                    self._idle.append(child)
                yield item
        finally:
            self._busy.discard(child)
            if not is_done:  # Whatever it does now, nobody waits for it.
                child.kill()

    @property
    def process_ids(self) -> list[int]:
        return [child.process_id for child in (*self._idle, *self._busy) if child.process_id]

    def close_idle(self) -> None:
        while self._idle:
            self._idle.pop().kill()

    def close(self) -> None:
        """End all children; a job that runs is given up."""
        self.close_idle()
        for child in self._busy:
            child.kill()


class _Child:
    """One process. Its owner waits for it in threads that end with it, or with the broker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def begin(self, job: CompactionJob) -> None:
        await _in_thread(partial(self._send, job))

    async def next_item(self) -> Item:
        item = await _in_thread(self._receive)
        if isinstance(item, Exception):
            raise item
        return item

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            process = self._process
        if process is not None:
            process.kill()
            threading.Thread(target=_bury, args=(process,), daemon=True).start()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_killed:
                raise CompactionInterruptedError("its process was ended")
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CHILD_CODE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    # Whatever makes the package importable here does so there.
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    # An interrupt from the terminal is the broker's to handle.
                    start_new_session=True,
                )
            return self._process

    def _send(self, job: CompactionJob) -> None:
        process = self._started()
        try:
            pickle.dump(job, _pipe(process.stdin))
            _pipe(process.stdin).flush()
        except OSError as error:
            raise _died(process) from error

    def _receive(self) -> Item | Exception:
        process = self._started()
        try:
            item: Item | Exception = pickle.load(_pipe(process.stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise _died(process) from error
        return item


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise CompactionInterruptedError("its process has no pipe")
    return pipe


def _died(process: subprocess.Popen[bytes]) -> CompactionInterruptedError:
    process.kill()
    return CompactionInterruptedError(f"its process ended with status {process.wait()}")


def _bury(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        # What it did not read any more cannot be flushed.
        with contextlib.suppress(OSError):
            _pipe(pipe).close()


async def _in_thread(function: Callable[[], Result]) -> Result:
    """Wait in a thread that does not keep the broker from ending, as those of a pool would."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(Result, result))

    def target() -> None:
        result, failure = None, None
        try:
            result = function()
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=target, name="cleaner", daemon=True).start()
    return await future


# -- in the child --------------------------------------------------------------------------------


def run_child() -> None:
    """Do jobs until the input ends."""
    os.nice(_LOWEST_PRIORITY)
    # What anybody prints must not get between the results.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs: queue.SimpleQueue[CompactionJob] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    while True:
        _run_job(jobs.get(), output)


def _read_jobs(jobs: queue.SimpleQueue[CompactionJob]) -> None:
    try:
        while True:
            jobs.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)


def _run_job(job: CompactionJob, output: IO[bytes]) -> None:
    clock = SystemClock()
    throttle = IoThrottle(job.io_max_bytes_per_second, clock)
    try:
        for item in compact(job, DiskFiles(), clock, throttle.spend):
            _put(item, output)
    except Exception as error:
        _put(error, output)


def _put(item: Item | Exception, output: IO[bytes]) -> None:
    output.write(pickle.dumps(item))
    output.flush()
