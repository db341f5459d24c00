"""Compaction in a real child process, on a real disk."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from headwater.base.clocks import SystemClock
from headwater.sim.campaigns.logs import NOW_MS, batch_of, open_log, read_records
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.cleaner import Cleaner
from headwater.storage.compaction.cleaner_process import CleanerProcesses
from headwater.storage.compaction.compaction_job import (
    CleanedGroup,
    CompactionJob,
    CompactionResult,
)
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.disk.files import DiskFiles
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.segments.segment_files import LOG, segment_path

CONFIG = LogConfig(segment_bytes=20_000, cleanup_policy=frozenset({"compact"}))
Item = CleanedGroup | CompactionResult


async def save_nothing(log: PartitionLog, offset: int) -> None:
    """Nobody reads the checkpoint in these tests."""


def make_log(directory: Path) -> PartitionLog:
    log = open_log(DiskFiles(), f"{directory}/topic-0", CONFIG)
    for number in range(300):
        batch = batch_of(b"%d" % number, bytes(100), key=b"%d" % (number % 10))
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    log.flush()
    log.raise_high_watermark(log.log_end_offset)
    return log


def make_cleaner(
    run_job: Callable[[CompactionJob], AsyncGenerator[Item, None]],
    config: CleanerConfig | None = None,
) -> Cleaner:
    own = config or CleanerConfig(backoff_ms=0)
    return Cleaner(own, SystemClock(), run_job, asyncio.to_thread, save_nothing)


async def is_gone(process_id: int) -> bool:
    for _ in range(500):
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.01)
    return False


def test_a_child_compacts_survives_its_faults_and_can_be_killed(tmp_path: Path) -> None:
    asyncio.run(_test_a_child(tmp_path))


async def _test_a_child(tmp_path: Path) -> None:
    processes = CleanerProcesses()
    log = make_log(tmp_path)
    killed: list[int] = []

    async def run_and_kill(job: CompactionJob) -> AsyncGenerator[Item, None]:
        async with aclosing(processes.run(job)) as items:
            async for item in items:
                yield item
                if not killed:
                    killed.extend(processes.process_ids)
                    os.kill(killed[0], signal.SIGKILL)

    # The job is throttled, so that it is not done when its first segment is.
    slow = CleanerConfig(backoff_ms=0, io_max_bytes_per_second=40_000)
    cleaner = make_cleaner(run_and_kill, slow)
    assert await cleaner.clean_once([log]) == []
    assert cleaner.uncleanable == {}
    assert len(killed) == 1 and await is_gone(killed[0])
    assert processes.process_ids == []
    assert not any(name.endswith(".cleaned") for name in os.listdir(log.directory))

    log.retired.remove_due(SystemClock().wall_ms() + CONFIG.file_delete_delay_ms)
    cleaner = make_cleaner(processes.run)
    (result,) = await cleaner.clean_once([log])
    (child,) = processes.process_ids
    assert child != killed[0]
    assert result.first_dirty_offset == log.log_end_offset
    found = [(record.key, record.offset) for record in read_records(log, 0)]
    assert found == [(b"%d" % (number % 10), 2 * number + 1) for number in range(290, 300)]
    assert os.getpriority(os.PRIO_PROCESS, child) == 19
    processes.close_idle()
    assert await is_gone(child)
    log.close()


def test_what_is_wrong_with_a_log_is_said_here(tmp_path: Path) -> None:
    asyncio.run(_test_a_fault(tmp_path))


async def _test_a_fault(tmp_path: Path) -> None:
    processes = CleanerProcesses()
    log = make_log(tmp_path)
    with open(segment_path(log.directory, 0, LOG), "r+b") as file:
        file.seek(100)
        file.write(b"?")
    cleaner = make_cleaner(processes.run)
    assert await cleaner.clean_once([log]) == []
    assert "checksum" in cleaner.uncleanable[log.partition]
    processes.close()
    log.close()


def test_a_job_that_is_cancelled_ends_its_child(tmp_path: Path) -> None:
    asyncio.run(_test_cancellation(tmp_path))


async def _test_cancellation(tmp_path: Path) -> None:
    processes = CleanerProcesses()
    log = make_log(tmp_path)
    cleaner = make_cleaner(processes.run, CleanerConfig(io_max_bytes_per_second=1))
    cleaning = asyncio.create_task(cleaner.clean_once([log]))
    while not processes.process_ids:
        await asyncio.sleep(0.01)
    (child,) = processes.process_ids
    cleaning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cleaning
    assert await is_gone(child)
    log.close()


def test_closing_gives_up_what_runs(tmp_path: Path) -> None:
    asyncio.run(_test_closing(tmp_path))


async def _test_closing(tmp_path: Path) -> None:
    processes = CleanerProcesses()
    log = make_log(tmp_path)
    cleaner = make_cleaner(processes.run, CleanerConfig(io_max_bytes_per_second=1))
    cleaning = asyncio.create_task(cleaner.clean_once([log]))
    while not processes.process_ids:
        await asyncio.sleep(0.01)
    processes.close()
    assert await cleaning == []
    assert cleaner.uncleanable == {}
    log.close()


def test_a_child_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    section = dirty_section(log, 0, NOW_MS)
    _, job = plan_compaction(section, CleanerConfig(io_max_bytes_per_second=1), NOW_MS)
    code = "from headwater.storage.compaction.cleaner_process import run_child; run_child()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        pickle.dump(job, child.stdin)
        # What a parent that was killed leaves behind is a closed pipe.
        child.stdin.close()
        assert child.wait(timeout=30) == 0
    log.close()
