"""How far a log is durable, and how many waiting writers share one sync."""

import asyncio
import errno
import random
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from headwater.sim.campaigns.log import LogCampaign
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    new_disk,
    open_log,
    read_records,
    sized_batch,
)
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.errors import LogStorageError
from headwater.storage.flush import FlushPlan, SharedFsync
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import apply_retention
from headwater.storage.truncation import truncate_to

T = TypeVar("T")


def log_on(disk: FaultyDisk, config: LogConfig | None = None) -> PartitionLog:
    return open_log(disk, DIRECTORY, config or LogConfig(segment_bytes=300))


def follow(log: PartitionLog, count: int) -> None:
    for _ in range(count):
        log.append_as_follower(sized_batch(log.log_end_offset, 100), now_ms=NOW_MS)


# -- offsets -------------------------------------------------------------------------------------


def test_a_flush_makes_all_that_was_appended_durable() -> None:
    disk = new_disk()
    log = log_on(disk)
    follow(log, 2)
    assert (log.flushed_offset, log.recovery_point) == (0, 0)
    log.flush()
    assert (log.flushed_offset, log.recovery_point) == (2, 2)
    for seed in range(10):
        assert log_on(disk.after_power_loss(random.Random(seed))).log_end_offset == 2


def test_a_log_that_was_closed_loses_nothing_of_its_last_segment() -> None:
    disk = new_disk()
    log = log_on(disk, LogConfig(segment_bytes=1_000, index_interval_bytes=1))
    follow(log, 4)
    log.close()
    files = {
        path: data for path, data in disk.contents().items() if path.startswith(f"{DIRECTORY}/0")
    }
    assert {path.rpartition(".")[2] for path in files} >= {"log", "index", "timeindex"}
    assert all(data for path, data in files.items() if path.endswith(("log", "index")))
    for seed in range(50):
        left = disk.after_power_loss(random.Random(seed)).contents()
        assert {path: left.get(path) for path in files} == files, f"seed {seed}"


def test_the_recovery_point_waits_for_sealed_segments() -> None:
    disk = new_disk()
    log = log_on(disk)
    follow(log, 2)
    log.flush()
    follow(log, 3)  # The second of them starts a new segment.
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    # Records up to 2 are durable; the indexes of the segment that holds them are not.
    assert (log.flushed_offset, log.recovery_point) == (2, 0)
    log.flush()
    assert (log.flushed_offset, log.recovery_point) == (5, 5)


def test_what_is_appended_during_a_flush_is_left_to_the_next() -> None:
    log = log_on(new_disk())
    follow(log, 2)
    plan = log.plan_flush()
    follow(log, 2)
    plan.run()
    log.complete_flush(plan)
    assert (log.flushed_offset, log.recovery_point) == (2, 0)


def test_names_that_come_during_a_flush_are_left_to_the_next() -> None:
    disk = new_disk()
    log = log_on(disk)
    follow(log, 3)
    plan = log.plan_flush()
    follow(log, 1)
    plan.run()
    log.complete_flush(plan)
    disk.operations.clear()
    log.flush()
    assert ("sync_dir", DIRECTORY) in disk.operations
    disk.operations.clear()
    log.flush()
    assert ("sync_dir", DIRECTORY) not in disk.operations


def test_a_flush_from_before_a_truncation_proves_nothing() -> None:
    log = log_on(new_disk())
    follow(log, 5)
    plan = log.plan_flush()
    truncate_to(log, 2, NOW_MS)
    follow(log, 2)
    plan.run()
    log.complete_flush(plan)
    assert log.flushed_offset == 2


def test_a_flush_of_a_segment_that_retention_removed_meanwhile_is_no_failure() -> None:
    config = LogConfig(segment_bytes=300, retention_bytes=100, file_delete_delay_ms=0)
    log = log_on(new_disk(), config)
    follow(log, 7)
    plan = log.plan_flush()
    log.raise_high_watermark(7)
    assert len(apply_retention(log, NOW_MS)) == 2
    log.retired.remove_due(NOW_MS)
    plan.run()
    log.complete_flush(plan)
    assert log.flushed_offset == 7


def test_a_failing_sync_ends_the_log() -> None:
    disk = new_disk()
    log = log_on(disk)
    follow(log, 2)
    disk.faults = [Fault({"sync"}, hit_count_max=1)]
    with pytest.raises(LogStorageError):
        log.flush()
    # A second sync that succeeds would prove nothing.
    with pytest.raises(LogStorageError):
        log.flush()
    with pytest.raises(LogStorageError):
        append(log, b"v")
    assert log.flushed_offset == 0


# -- shared fsync --------------------------------------------------------------------------------


class Threads:
    """Work that was sent to a thread waits here until the test lets it happen."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    async def run(self, work: Callable[[], T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.waiting.append((work, done))
        return await done

    async def finish_one(self) -> None:
        ((work, done),) = self.waiting
        self.waiting.clear()
        try:
            done.set_result(work())
        except OSError as error:
            done.set_exception(error)
        await settle()


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_any_number_of_waiters_costs_one_sync() -> None:
    async def scenario() -> None:
        disk = new_disk()
        log, threads = open_log(disk, DIRECTORY), Threads()
        shared = SharedFsync(log, threads.run)
        waiters = []
        for _ in range(50):
            result = append(log, b"v")
            waiters.append(asyncio.create_task(shared.wait_until_durable(result.last_offset + 1)))
        await settle()
        sync_count = disk.sync_count
        assert not any(waiter.done() for waiter in waiters)
        await threads.finish_one()
        assert all(waiter.done() for waiter in waiters)
        assert (disk.sync_count - sync_count, shared.round_count) == (1, 1)
        assert log.flushed_offset == 50
        await asyncio.gather(*waiters)

    asyncio.run(scenario())


def test_who_appends_during_a_round_waits_for_the_next() -> None:
    async def scenario() -> None:
        log, threads = open_log(new_disk(), DIRECTORY), Threads()
        shared = SharedFsync(log, threads.run)
        append(log, b"v")
        first = asyncio.create_task(shared.wait_until_durable(1))
        await settle()
        append(log, b"v")
        late = [asyncio.create_task(shared.wait_until_durable(2)) for _ in range(3)]
        await settle()
        await threads.finish_one()
        assert first.done()
        assert not any(waiter.done() for waiter in late)
        assert log.flushed_offset == 1
        await threads.finish_one()
        assert all(waiter.done() for waiter in late)
        assert shared.round_count == 2
        await asyncio.gather(first, *late)

    asyncio.run(scenario())


def test_what_is_durable_already_waits_for_nothing() -> None:
    async def scenario() -> None:
        log, threads = open_log(new_disk(), DIRECTORY), Threads()
        append(log, b"v")
        log.flush()
        shared = SharedFsync(log, threads.run)
        await shared.wait_until_durable(1)
        assert (shared.round_count, threads.waiting) == (0, [])

    asyncio.run(scenario())


def test_a_failing_sync_fails_all_who_wait_and_the_log() -> None:
    async def scenario() -> None:
        disk = new_disk()
        log, threads = open_log(disk, DIRECTORY), Threads()
        shared = SharedFsync(log, threads.run)
        append(log, b"v")
        waiters = [asyncio.create_task(shared.wait_until_durable(1)) for _ in range(3)]
        await settle()
        disk.faults = [Fault({"sync"}, hit_count_max=1)]
        append(log, b"v")
        waiters.append(asyncio.create_task(shared.wait_until_durable(2)))
        await settle()
        await threads.finish_one()
        results = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(result) for result in results] == [LogStorageError] * 4
        assert log.failure is not None
        with pytest.raises(LogStorageError):
            await shared.wait_until_durable(1)
        assert log.flushed_offset == 0

    asyncio.run(scenario())


def test_a_sync_without_a_descriptor_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.storage.flush.EXHAUSTED_PAUSE_S", 0.001)

    async def scenario() -> None:
        disk = new_disk()
        log, threads = open_log(disk, DIRECTORY), Threads()
        shared = SharedFsync(log, threads.run)
        append(log, b"v")
        disk.faults = [Fault({"sync_dir"}, DIRECTORY, errno.EMFILE, hit_count_max=2)]
        waiter = asyncio.create_task(shared.wait_until_durable(1))
        while not waiter.done():
            await asyncio.sleep(0.001)
            if threads.waiting:
                await threads.finish_one()
        await waiter
        assert (log.failure, log.flushed_offset, shared.round_count) == (None, 1, 3)
        # The directory too: what it was not synced for before is not forgotten.
        for seed in range(10):
            lost = disk.after_power_loss(random.Random(seed))
            assert open_log(lost, DIRECTORY).log_end_offset == 1

    asyncio.run(scenario())


def test_a_cancelled_waiter_does_not_disturb_the_others() -> None:
    async def scenario() -> None:
        log, threads = open_log(new_disk(), DIRECTORY), Threads()
        shared = SharedFsync(log, threads.run)
        append(log, b"v")
        first, second = (asyncio.create_task(shared.wait_until_durable(1)) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        assert first.cancelled()
        assert not second.done()
        await threads.finish_one()
        await second
        assert (log.flushed_offset, shared.round_count) == (1, 1)

    asyncio.run(scenario())


def test_a_round_goes_on_when_all_who_waited_are_gone() -> None:
    async def scenario() -> None:
        log, threads = open_log(new_disk(), DIRECTORY), Threads()
        shared = SharedFsync(log, threads.run)
        append(log, b"v")
        waiter = asyncio.create_task(shared.wait_until_durable(1))
        await settle()
        waiter.cancel()
        await settle()
        await threads.finish_one()
        assert log.flushed_offset == 1
        append(log, b"v")
        second = asyncio.create_task(shared.wait_until_durable(2))
        await settle()
        await threads.finish_one()
        await second

    asyncio.run(scenario())


def test_a_round_covers_segments_that_were_sealed_while_it_was_awaited() -> None:
    async def scenario() -> None:
        disk = new_disk()
        log, threads = log_on(disk), Threads()
        shared = SharedFsync(log, threads.run)
        follow(log, 8)
        waiter = asyncio.create_task(shared.wait_until_durable(8))
        await settle()
        await threads.finish_one()
        await waiter
        assert log.recovery_point == 8
        for seed in range(10):
            after = log_on(disk.after_power_loss(random.Random(seed)))
            assert [record.offset for record in read_records(after, 0)] == list(range(8))

    asyncio.run(scenario())


# -- planted bugs --------------------------------------------------------------------------------


def _forget_names(plan: FlushPlan) -> None:
    for segment in plan.sealed:
        segment.sync()
    plan.active.log.sync()


def _forget_sealed_segments(plan: FlushPlan) -> None:
    plan.active.log.sync()
    if plan.directory is not None:
        plan.files.sync_dir(plan.directory)


def _forget_the_active_segment(plan: FlushPlan) -> None:
    for segment in plan.sealed:
        segment.sync()
    if plan.directory is not None:
        plan.files.sync_dir(plan.directory)


@pytest.mark.parametrize(
    "planted", [_forget_names, _forget_sealed_segments, _forget_the_active_segment]
)
def test_a_flush_that_forgets_something_is_caught_by_the_campaign(
    planted: Callable[[FlushPlan], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FlushPlan, "run", planted)
    with pytest.raises(AssertionError, match=r"^seed [^$]*(were flushed|after the crash)"):
        for seed in range(200):
            LogCampaign(seed).run(60)
