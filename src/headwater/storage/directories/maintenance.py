"""What a broker does to its logs periodically.

    retention                log.retention.check.interval.ms
    flush                    log.flush.scheduler.interval.ms: records that waited for flush.ms
    rolled-flush             so that the recovery point follows behind segments that are full
    recovery-points          log.flush.offset.checkpoint.interval.ms
    log-starts               log.flush.start.offset.checkpoint.interval.ms
    high-watermarks          replica.high.watermark.checkpoint.interval.ms
    removal                  files of segments and logs that were deleted a while ago
    producer-expiration      producer.id.expiration.check.interval.ms
    moves                    logs on their way to another directory, no faster than `MovePace`

Tasks look at a limited number of logs at a time, so that the event loop gets its turn however many
there are; see `periodic_tasks` for how they wait. A disk that fails takes its directory offline and
nothing else; one that is full does not: its checkpoints are written when there is room. When no
directory is left, the task ends with `NoLogDirectoryError`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from headwater.base.clocks import Clock, SystemClock
from headwater.base.errors import KafkaError
from headwater.base.settings import SettingValues
from headwater.base.threads import RunInThread
from headwater.storage.directories.directory_checkpoints import CheckpointWrite
from headwater.storage.directories.future_log import FutureLog
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_directory import LogDirectory, Removal
from headwater.storage.directories.move_pace import MovePace
from headwater.storage.directories.periodic_tasks import (
    BlockingWork,
    Pause,
    PeriodicTask,
    Steps,
    run_periodically,
)
from headwater.storage.errors import LogStorageError
from headwater.storage.log_config import LONG_MAX
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import apply_retention, expired_segments
from headwater.storage.segments.segment import LogSegment

_logger = logging.getLogger(__name__)

INTERVAL_MIN_MS: Final = 10
FLUSH_CHECK_INTERVAL_MS: Final = 1_000
ROLLED_FLUSH_INTERVAL_MS: Final = 5_000
REMOVAL_INTERVAL_MS: Final = 1_000
MOVE_INTERVAL_MS: Final = 1_000
#: Logs that a task looks at before it lets others have a turn: about a millisecond's worth.
_LOGS_AT_ONCE: Final = 200

CheckpointPlan = Callable[[LogDirectory], CheckpointWrite | None]


def must_flush(log: PartitionLog) -> bool:
    """Whether `flush.messages` wants the log synced before an append is acknowledged."""
    return log.record_end_offset - log.flushed_offset >= log.config.flush_messages


class Maintenance:
    """The periodic tasks of a broker's logs; their owner is that of the logs."""

    def __init__(
        self, directories: LogDirectories, settings: SettingValues, pace: MovePace | None = None
    ) -> None:
        self._directories = directories
        self._pace = pace or MovePace(lambda: LONG_MAX, SystemClock())
        self._flushed_ms: WeakKeyDictionary[PartitionLog, int] = WeakKeyDictionary()
        delay_ms = settings.integer("log.initial.task.delay.ms")
        flush_check_ms = settings.integer("log.flush.scheduler.interval.ms")
        if flush_check_ms == LONG_MAX:
            # It is not set. Kafka would never look then, and a topic's flush.ms have no effect.
            flush_check_ms = FLUSH_CHECK_INTERVAL_MS

        def task(
            name: str, interval: str | int, start: Callable[[int], Steps], delay_ms: int = delay_ms
        ) -> PeriodicTask:
            interval_ms = interval if isinstance(interval, int) else settings.integer(interval)
            interval_ms = max(interval_ms, INTERVAL_MIN_MS)
            return PeriodicTask(name, interval_ms, delay_ms, partial(self._checked, start))

        recovery_points = partial(self._checkpoint, LogDirectory.plan_recovery_points)
        log_starts = partial(self._checkpoint, LogDirectory.plan_log_starts)
        high_watermarks = partial(self._checkpoint, LogDirectory.plan_high_watermarks)
        tasks = [
            task("retention", "log.retention.check.interval.ms", self._retain),
            task("flush", flush_check_ms, self._flush_waiting),
            task("rolled-flush", ROLLED_FLUSH_INTERVAL_MS, self._flush_rolled),
            task("recovery-points", "log.flush.offset.checkpoint.interval.ms", recovery_points),
            task("log-starts", "log.flush.start.offset.checkpoint.interval.ms", log_starts),
            task(
                "high-watermarks", "replica.high.watermark.checkpoint.interval.ms", high_watermarks
            ),
            task("removal", REMOVAL_INTERVAL_MS, self._remove),
            task(
                "producer-expiration",
                "producer.id.expiration.check.interval.ms",
                self._expire_producers,
            ),
            # Somebody asked for them, and waits: what can wait for a broker to settle is the rest.
            task("moves", MOVE_INTERVAL_MS, self._move, delay_ms=0),
        ]
        self.tasks = {each.name: each for each in tasks}

    async def run(self, stop: asyncio.Event, clock: Clock, run_in_thread: RunInThread) -> None:
        """Do all of it until `stop` is set; `NoLogDirectoryError` when there is nothing left."""
        await run_periodically(list(self.tasks.values()), stop, clock, run_in_thread)

    def _checked(self, start: Callable[[int], Steps], now_ms: int) -> Steps:
        yield from start(now_ms)
        self._directories.check_online()

    def _logs(self) -> Iterator[tuple[LogDirectory, list[PartitionLog]]]:
        """All logs, some at a time; whoever waits in between must see whether they still serve."""
        for directory in self._directories.online():
            logs = list(directory.logs.values())
            for first in range(0, len(logs), _LOGS_AT_ONCE):
                some = logs[first : first + _LOGS_AT_ONCE]
                yield directory, [log for log in some if _serves(directory, log)]

    # -- retention -------------------------------------------------------------------------------

    def _retain(self, now_ms: int) -> Steps:
        for directory, logs in self._logs():
            # The new start offsets of all these logs are made durable with one write, in a thread.
            # Each log would do that itself, but then the owner would wait for each of them.
            starts = {log.partition: _start_after_retention(log, now_ms) for log in logs}
            changes = {partition: start for partition, start in starts.items() if start is not None}
            kept: list[bool] = []
            if changes:
                keep = partial(directory.checkpoints.log_starts.keep, changes)
                yield BlockingWork(keep, directory.fail_checkpoint, partial(kept.append, True))
            for log in logs if kept else ():
                if log.partition in changes and _serves(directory, log):
                    _retain_in(directory, log, now_ms)
            yield None

    # -- flushing --------------------------------------------------------------------------------

    def _flush_waiting(self, now_ms: int) -> Steps:
        for directory, logs in self._logs():
            for log in logs:
                flush_ms = log.config.flush_ms
                if flush_ms == LONG_MAX:
                    continue
                waited_ms = now_ms - self._flushed_ms.setdefault(log, now_ms)
                if log.flushed_offset == log.record_end_offset or waited_ms < flush_ms:
                    continue
                if _serves(directory, log):
                    self._flushed_ms[log] = now_ms
                    yield _flush_work(directory, log)
            yield None

    def _flush_rolled(self, _now_ms: int) -> Steps:
        for directory, logs in self._logs():
            for log in logs:
                rolled = log.recovery_point < log.segments.active.base_offset
                if rolled and _serves(directory, log):
                    yield _flush_work(directory, log)
            yield None

    # -- checkpoints -----------------------------------------------------------------------------

    def _checkpoint(self, plan: CheckpointPlan, _now_ms: int) -> Steps:
        for directory in self._directories.online():
            directory.notice_failures()
            write = plan(directory) if directory.is_online else None
            if write is not None:
                yield BlockingWork(write.run, directory.fail_checkpoint)

    # -- removal ---------------------------------------------------------------------------------

    def _remove(self, now_ms: int) -> Steps:
        for directory, logs in self._logs():
            for log in logs:
                segments = log.retired.take_due(now_ms) if len(log.retired) else []
                if segments:
                    yield BlockingWork(partial(_remove_segments, segments), directory.fail)
            yield None
        for directory in self._directories.online():
            for removal in [each for each in directory.removals if each.due_ms <= now_ms]:
                directory.removals.remove(removal)
                if removal.log is not None:
                    removal.log.close()
                yield BlockingWork(partial(_remove_tree, directory, removal), directory.fail)

    # -- producers and moves ---------------------------------------------------------------------

    def _expire_producers(self, now_ms: int) -> Steps:
        for _, logs in self._logs():
            for log in logs:
                log.producer_states.remove_expired(now_ms)
            yield None

    def _move(self, now_ms: int) -> Steps:
        moves = self._directories.moves
        for move in moves:
            while moves.is_under_way(move) and move.lag:
                pause_ms = self._pace.pause_ms()
                if pause_ms:
                    yield Pause(pause_ms)
                elif self._try(move, partial(self._copy, move, now_ms)):
                    yield None
                else:
                    break
            if moves.is_under_way(move) and not move.lag:
                yield _flush_work(move.target, move.log)
                if moves.is_under_way(move):
                    self._try(move, partial(moves.complete, move, now_ms))

    def _copy(self, move: FutureLog, now_ms: int) -> int:
        size_bytes = move.copy(now_ms, self._pace.piece_bytes)
        self._pace.copied(size_bytes)
        return size_bytes

    def _try(self, move: FutureLog, step: Callable[[], object]) -> bool:
        """Go on with a move; returns whether that led anywhere."""
        try:
            return bool(step())
        except KafkaError as error:
            _logger.error("%s cannot move to %s: %s", move.log.partition, move.target.path, error)
        except OSError as error:
            is_target = str(error.filename).startswith(f"{move.target.path}/")
            (move.target if is_target else move.source).fail(error)
        return False


def _serves(directory: LogDirectory, log: PartitionLog) -> bool:
    """Whether a log is still there: it may have been deleted or moved during a wait."""
    return log.failure is None and directory.logs.get(log.partition) is log


def _start_after_retention(log: PartitionLog, now_ms: int) -> int | None:
    """Where the log will start when retention has dropped what it may; None if that is nothing."""
    expired = expired_segments(
        log.segments,
        log.config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        now_ms=now_ms,
        waiting=log.waiting,
    )
    if not expired:
        return None
    kept = len(expired) < len(log.segments)
    first = log.segments[len(expired)].base_offset if kept else log.log_end_offset
    return max(log.log_start_offset, first)


def _retain_in(directory: LogDirectory, log: PartitionLog, now_ms: int) -> None:
    try:
        with directory.guarding():
            for segment, reason in apply_retention(log, now_ms):
                _logger.info("%s is dropped: %s", segment.log.path, reason)
    except LogStorageError as error:
        _logger.error("Retention of %s failed: %s", log.partition, error)


def _flush_work(directory: LogDirectory, log: PartitionLog) -> BlockingWork:
    plan = log.plan_flush()

    def fail(error: OSError) -> None:
        # Of a log that was deleted meanwhile nothing has to be durable any more.
        if log in directory.all_logs():
            log.durability.directory_changed()
            directory.fail(error)

    return BlockingWork(plan.run, fail, partial(log.complete_flush, plan))


def _remove_segments(segments: list[LogSegment]) -> None:
    for segment in segments:
        segment.remove_files()


def _remove_tree(directory: LogDirectory, removal: Removal) -> None:
    if directory.files.exists(removal.path):
        directory.files.remove_tree(removal.path)
