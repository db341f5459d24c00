import asyncio
import errno
import random
from collections.abc import Callable
from typing import TypeVar

import pytest

from headwater.base.clocks import ManualClock
from headwater.sim.campaigns.broker_logs import (
    TOPIC_ID,
    append,
    open_directories,
    orders,
    run_inline,
)
from headwater.sim.campaigns.logs import NOW_MS, batch_of, read_records
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.checkpoints import (
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.directories.log_directories import LogDirectories, NoLogDirectoryError
from headwater.storage.directories.maintenance import Maintenance, must_flush
from headwater.storage.directories.periodic_tasks import BlockingWork, PeriodicTask
from headwater.storage.log_config import LogConfig
from headwater.storage.log_settings import LOG_SETTINGS
from headwater.storage.retention import delete_records_before

T = TypeVar("T")

PATHS = ["/a", "/b"]


def setup(
    config: LogConfig | None = None, *, log_count: int = 1, settings: dict[str, str] | None = None
) -> tuple[FaultyDisk, LogDirectories, Maintenance]:
    disk = FaultyDisk(directories=PATHS)
    directories = open_directories(disk, PATHS, config)
    for number in range(log_count):
        directories.create(orders(number), TOPIC_ID, NOW_MS)
    return disk, directories, Maintenance(directories, LOG_SETTINGS.parse(settings or {}))


def log_files(disk: FaultyDisk, directory: str, suffix: str = ".log") -> list[str]:
    return [name for name in disk.list_dir(directory) if name.endswith(suffix)]


# -- periods -------------------------------------------------------------------------------------


def test_periods_are_those_of_the_notes() -> None:
    _, _, maintenance = setup()
    intervals = {name: task.interval_ms for name, task in maintenance.tasks.items()}
    assert intervals == {
        "retention": 300_000,
        "flush": 1_000,
        "rolled-flush": 5_000,
        "recovery-points": 60_000,
        "log-starts": 60_000,
        "high-watermarks": 5_000,
        "removal": 1_000,
        "producer-expiration": 600_000,
        "moves": 1_000,
    }
    assert {task.initial_delay_ms for task in _patient(maintenance)} == {30_000}


def _patient(maintenance: Maintenance) -> list[PeriodicTask]:
    """Those that leave a broker time to settle."""
    return [task for name, task in maintenance.tasks.items() if name != "moves"]


def test_moves_that_somebody_waits_for_do_not_wait_for_a_broker_to_settle() -> None:
    _, _, maintenance = setup()
    assert maintenance.tasks["moves"].initial_delay_ms == 0


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("log.retention.check.interval.ms", "retention"),
        ("log.flush.scheduler.interval.ms", "flush"),
        ("log.flush.offset.checkpoint.interval.ms", "recovery-points"),
        ("log.flush.start.offset.checkpoint.interval.ms", "log-starts"),
        ("replica.high.watermark.checkpoint.interval.ms", "high-watermarks"),
        ("producer.id.expiration.check.interval.ms", "producer-expiration"),
    ],
)
def test_each_period_can_be_set(name: str, task: str) -> None:
    _, _, maintenance = setup(settings={name: "1234"})
    assert maintenance.tasks[task].interval_ms == 1234


def test_the_first_round_can_be_sooner_and_no_period_is_endlessly_short() -> None:
    _, _, maintenance = setup(
        settings={"log.initial.task.delay.ms": "7", "log.flush.offset.checkpoint.interval.ms": "0"}
    )
    assert {task.initial_delay_ms for task in _patient(maintenance)} == {7}
    assert maintenance.tasks["recovery-points"].interval_ms == 10


# -- retention and removal -----------------------------------------------------------------------


def test_retention_drops_segments_and_removal_their_files_later() -> None:
    config = LogConfig(segment_bytes=200, retention_ms=1_000, file_delete_delay_ms=500)
    disk, directories, maintenance = setup(config, log_count=3)
    for log in directories:
        for _ in range(3):
            append(log, bytes(100))
        log.raise_high_watermark(log.log_end_offset)
    later = NOW_MS + 1_002
    maintenance.tasks["retention"].run_now(later - 2)
    assert all(len(log.segments) == 3 for log in directories)
    disk.operations.clear()
    maintenance.tasks["retention"].run_now(later)
    starts = [path for name, path in disk.operations if name == "sync" and LOG_START in path]
    for log in directories:
        assert (log.log_start_offset, len(log.segments)) == (3, 1)
        assert len(log_files(disk, log.directory, ".log.deleted")) == 3
    assert len(starts) == 2, "one write of the start offsets for each directory"
    maintenance.tasks["removal"].run_now(later + 499)
    assert all(len(log_files(disk, log.directory, ".log.deleted")) == 3 for log in directories)
    maintenance.tasks["removal"].run_now(later + 500)
    assert all(not log_files(disk, log.directory, ".log.deleted") for log in directories)
    found = open_directories(disk.crash(random.Random(1)), PATHS, config)
    assert all(log.log_start_offset == 3 for log in found)


def test_retention_makes_the_new_start_durable_first() -> None:
    config = LogConfig(segment_bytes=200, retention_bytes=150)
    for seed in range(10):
        disk, directories, maintenance = setup(config)
        [log] = directories
        for _ in range(5):
            append(log, bytes(100))
        log.flush()
        log.raise_high_watermark(5)
        maintenance.tasks["retention"].run_now(NOW_MS)
        assert log.log_start_offset == 4
        [found] = open_directories(disk.crash(random.Random(seed)), PATHS, config)
        assert (found.log_start_offset, found.log_end_offset) == (4, 5)


def test_deleted_logs_are_removed_after_their_delay() -> None:
    disk, directories, maintenance = setup(LogConfig(file_delete_delay_ms=500), log_count=2)
    for log in directories:
        append(log, b"a")
    directories.delete([orders(0)], NOW_MS)
    maintenance.tasks["removal"].run_now(NOW_MS + 499)
    assert len(log_files(disk, "/a", "-delete")) == 1
    maintenance.tasks["removal"].run_now(NOW_MS + 500)
    assert not log_files(disk, "/a", "-delete")
    assert not directories.directories[0].removals
    assert disk.is_dir("/b/orders-1")


def test_remains_of_deletions_before_a_restart_are_removed() -> None:
    disk, directories, _ = setup()
    directories.delete([orders(0)], NOW_MS)
    directories.shutdown(1)
    again = open_directories(disk, PATHS)
    Maintenance(again, LOG_SETTINGS.defaults()).tasks["removal"].run_now(NOW_MS)
    assert not log_files(disk, "/a", "-delete")


# -- flushing ------------------------------------------------------------------------------------


def test_flush_by_time() -> None:
    _, directories, maintenance = setup(LogConfig(flush_ms=1_000))
    [log] = directories
    maintenance.tasks["flush"].run_now(NOW_MS)
    append(log, b"a")
    maintenance.tasks["flush"].run_now(NOW_MS + 999)
    assert log.flushed_offset == 0
    maintenance.tasks["flush"].run_now(NOW_MS + 1_000)
    assert log.flushed_offset == 1
    append(log, b"a")
    maintenance.tasks["flush"].run_now(NOW_MS + 1_999)
    assert log.flushed_offset == 1
    maintenance.tasks["flush"].run_now(NOW_MS + 2_000)
    assert log.flushed_offset == 2


def test_without_flush_ms_nothing_is_flushed_by_time() -> None:
    disk, directories, maintenance = setup()
    [log] = directories
    append(log, b"a")
    before = disk.sync_count
    maintenance.tasks["flush"].run_now(NOW_MS + 10**12)
    assert (log.flushed_offset, disk.sync_count) == (0, before)


@pytest.mark.parametrize("flush_messages", [1, 3])
def test_flush_by_count(flush_messages: int) -> None:
    _, directories, _ = setup(LogConfig(flush_messages=flush_messages))
    [log] = directories
    assert not must_flush(log)
    for number in range(flush_messages):
        assert not must_flush(log), number
        append(log, b"a")
    assert must_flush(log)
    log.flush()
    assert not must_flush(log)


def test_the_recovery_point_follows_behind_full_segments() -> None:
    _, directories, maintenance = setup(LogConfig(segment_bytes=200))
    [log] = directories
    append(log, bytes(100))
    maintenance.tasks["rolled-flush"].run_now(NOW_MS)
    assert log.recovery_point == 0, "nothing has rolled"
    append(log, bytes(100))
    append(log, bytes(100))
    maintenance.tasks["rolled-flush"].run_now(NOW_MS)
    assert log.recovery_point == 3


def test_a_log_deleted_during_its_flush_harms_nobody() -> None:
    _, directories, maintenance = setup(LogConfig(segment_bytes=200), log_count=2)
    for log in directories:
        append(log, bytes(100))
        append(log, bytes(100))
    steps = maintenance.tasks["rolled-flush"].start(NOW_MS)
    work = next(step for step in steps if isinstance(step, BlockingWork))
    directories.delete([orders(0)], NOW_MS)
    work.fail(FileNotFoundError(errno.ENOENT, "gone", "/a/orders-0"))
    for step in steps:
        if isinstance(step, BlockingWork):
            step.run_now()
    assert len(directories.online()) == 2
    [kept] = directories
    assert (kept.partition, kept.recovery_point) == (orders(1), 2)


# -- checkpoints ---------------------------------------------------------------------------------


def test_checkpoints_hold_what_the_logs_say() -> None:
    disk, directories, maintenance = setup(log_count=2)
    for number, log in enumerate(directories):
        for _ in range(3):
            append(log, b"a")
        log.flush()
        log.raise_high_watermark(2 + number)
        delete_records_before(log, 1 + number)
    for name in ("recovery-points", "log-starts", "high-watermarks"):
        maintenance.tasks[name].run_now(NOW_MS)
    found = disk.crash(random.Random(0))
    for number, path in enumerate(PATHS):
        expected = {RECOVERY_POINT: 3, LOG_START: 1 + number, REPLICATION: 2 + number}
        for name, offset in expected.items():
            assert OffsetCheckpoint(found, f"{path}/{name}").read() == {orders(number): offset}


def test_an_idle_broker_writes_nothing() -> None:
    disk, directories, maintenance = setup(log_count=2)
    for log in directories:
        append(log, b"a")
        log.flush()
    counts = []
    for _ in range(3):
        for task in maintenance.tasks.values():
            task.run_now(NOW_MS)
        counts.append((disk.sync_count, disk.sync_dir_count))
    assert counts[0] == counts[1] == counts[2]


def test_silent_producers_are_forgotten() -> None:
    _, directories, maintenance = setup()
    [log] = directories
    batch = batch_of(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    maintenance.tasks["producer-expiration"].run_now(NOW_MS + 86_399_999)
    assert len(log.producer_states) == 1
    maintenance.tasks["producer-expiration"].run_now(NOW_MS + 86_400_000)
    assert len(log.producer_states) == 0


def test_moves_come_to_their_end() -> None:
    disk, directories, maintenance = setup(LogConfig(segment_bytes=300))
    [log] = directories
    for number in range(10):
        append(log, b"%d" % number)
    log.raise_high_watermark(10)
    directories.moves.start(orders(0), "/b", NOW_MS)
    maintenance.tasks["moves"].run_now(NOW_MS)
    [moved] = directories
    assert moved.directory == "/b/orders-0" and not directories.moves
    assert [r.value for r in read_records(moved, 0)] == [b"%d" % n for n in range(10)]
    maintenance.tasks["removal"].run_now(NOW_MS + 60_000)
    assert [name for name in disk.list_dir("/a") if name.startswith("orders")] == []


def test_a_move_to_a_full_disk_is_reported_and_harms_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, directories, maintenance = setup()
    [log] = directories
    for _ in range(10):
        append(log, bytes(100))
    log.raise_high_watermark(10)
    move = directories.moves.start(orders(0), "/b", NOW_MS)
    assert move is not None and move.copy(NOW_MS, max_bytes=100)
    disk.faults.append(Fault({"write"}, "/b", errno.ENOSPC, torn=True))
    maintenance.tasks["moves"].run_now(NOW_MS)
    assert "cannot move to /b" in caplog.text
    assert directories.find(orders(0)) is log
    disk.faults.clear()
    maintenance.tasks["moves"].run_now(NOW_MS)
    [moved] = directories
    assert moved.directory == "/b/orders-0"


# -- failing and driving -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "operation"),
    [
        ("recovery-points", "sync"),
        ("high-watermarks", "rename"),
        ("log-starts", "write"),
        ("rolled-flush", "sync"),
        ("retention", "sync"),
        ("removal", "remove"),
    ],
)
def test_a_failing_disk_takes_its_directory_offline_and_the_task_goes_on(
    task: str, operation: str
) -> None:
    config = LogConfig(segment_bytes=200, retention_bytes=0, file_delete_delay_ms=0)
    disk, directories, maintenance = setup(config, log_count=4)
    for log in directories:
        for _ in range(3):
            append(log, bytes(100))
        log.raise_high_watermark(3)
    if task == "removal":
        maintenance.tasks["retention"].run_now(NOW_MS)
    if task == "log-starts":
        for log in directories:
            delete_records_before(log, 1)
    kept = [log.partition for log in directories.directories[1].logs.values()]
    disk.faults.append(Fault({operation}, "/a"))
    maintenance.tasks[task].run_now(NOW_MS)
    assert [each.path for each in directories.online()] == ["/b"]
    assert [log.partition for log in directories] == kept and len(kept) == 2
    for name in maintenance.tasks:
        maintenance.tasks[name].run_now(NOW_MS + 1)
    assert all(log.failure is None for log in directories)
    next(iter(directories)).fail(OSError(errno.EIO, "broken"))
    with pytest.raises(NoLogDirectoryError):
        for name in maintenance.tasks:
            maintenance.tasks[name].run_now(NOW_MS + 2)


def test_the_event_loop_drives_it_and_hears_of_the_end() -> None:
    settings = {
        "log.initial.task.delay.ms": "0",
        "log.flush.offset.checkpoint.interval.ms": "10",
        "replica.high.watermark.checkpoint.interval.ms": "10",
    }
    disk, directories, maintenance = setup(settings=settings)
    [log] = directories
    append(log, b"a")
    log.flush()

    async def scenario() -> None:
        stop = asyncio.Event()

        async def thread(work: Callable[[], T]) -> T:
            result = work()
            table = directories.directories[0].checkpoints.recovery_points
            if table.offsets == {orders(0): 1}:
                stop.set()
            return result

        await maintenance.run(stop, ManualClock(NOW_MS), thread)

    asyncio.run(scenario())
    assert OffsetCheckpoint(disk, f"/a/{RECOVERY_POINT}").read() == {orders(0): 1}

    for directory in directories.directories:
        directory.go_offline("for this test")
    with pytest.raises(NoLogDirectoryError):
        asyncio.run(maintenance.run(asyncio.Event(), ManualClock(NOW_MS), run_inline))


@pytest.mark.parametrize("task", ["recovery-points", "high-watermarks", "retention"])
def test_a_full_disk_keeps_its_directory_and_is_tried_again(task: str) -> None:
    config = LogConfig(segment_bytes=200, retention_ms=1_000)
    disk, directories, maintenance = setup(config)
    (log,) = directories
    for _ in range(4):
        append(log, b"x" * 100)
    log.raise_high_watermark(log.log_end_offset)
    log.flush()
    disk.faults.append(Fault({"write"}, "/a", errno.ENOSPC))
    disk.faults.append(Fault({"write"}, "/b", errno.ENOSPC))
    maintenance.tasks[task].run_now(NOW_MS + 3_600_000)
    assert len(directories.online()) == len(PATHS)
    assert (log.failure, log.log_start_offset) == (None, 0)
    disk.faults.clear()
    maintenance.tasks[task].run_now(NOW_MS + 3_600_000)
    if task == "retention":
        assert log.log_start_offset > 0
    else:
        name = RECOVERY_POINT if task == "recovery-points" else REPLICATION
        directory = directories.directory_of(log.partition)
        assert directory is not None
        read = OffsetCheckpoint(disk, f"{directory.path}/{name}").read()
        assert read[log.partition] == log.log_end_offset
