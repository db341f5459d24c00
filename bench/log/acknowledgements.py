"""Acknowledging only what is on disk: writers that share an fsync against one fsync each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from bench.log.sizes import Sizes
from bench.log.workload import (
    LEADER_EPOCH,
    NOW_MS,
    abandon,
    fresh_directory,
    make_batches,
    open_log,
    send_again,
)
from bench.rounds import alternate
from bench.table import Row
from headwater.storage.flush import SharedFsync

T = TypeVar("T")

_BATCH_BYTES = 1024
_ROUNDS_MAX = 9


def measure(parent: str, sizes: Sizes) -> list[Row]:
    count = sizes.waiter_count * sizes.waiter_append_count
    comparison = alternate(
        lambda: count / asyncio.run(_seconds_shared(parent, sizes)),
        # One at a time is slow, and need not be done as often to be known.
        lambda: sizes.waiter_count / _seconds_each(parent, sizes.waiter_count),
        min(sizes.round_count, _ROUNDS_MAX),
    )
    what = f"Durable appends of {sizes.waiter_count} writers, fsync shared"
    return [Row.compared(what, "acks/s", comparison, "one fsync each")]


async def _seconds_shared(parent: str, sizes: Sizes) -> float:
    """Writers that each append, wait until that is durable, and append again."""
    loop = asyncio.get_running_loop()

    async def run_in_thread(work: Callable[[], T]) -> T:
        return await loop.run_in_executor(None, work)

    with fresh_directory(parent) as directory:
        log = open_log(directory)
        log.append_as_leader(
            make_batches(_BATCH_BYTES, 1)[0], leader_epoch=LEADER_EPOCH, now_ms=NOW_MS
        )
        fsync = SharedFsync(log, run_in_thread)

        async def write(batch: bytearray) -> None:
            for _ in range(sizes.waiter_append_count):
                result = log.append_as_leader(
                    send_again(batch), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS
                )
                await fsync.wait_until_durable(result.last_offset + 1)

        batches = make_batches(_BATCH_BYTES, sizes.waiter_count)
        start = perf_counter()
        await asyncio.gather(*map(write, batches))
        seconds = perf_counter() - start
        abandon(log)
        return seconds


def _seconds_each(parent: str, append_count: int) -> float:
    batch = make_batches(_BATCH_BYTES, 1)[0]
    with fresh_directory(parent) as directory:
        log = open_log(directory)
        log.append_as_leader(batch, leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
        start = perf_counter()
        for _ in range(append_count):
            log.append_as_leader(send_again(batch), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
            log.flush()
        seconds = perf_counter() - start
        abandon(log)
        return seconds
