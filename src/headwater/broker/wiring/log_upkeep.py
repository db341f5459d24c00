"""What a broker does to its logs in the background: retention, flushes, checkpoints, compaction.

`storage` knows how; here it gets the broker's settings, its clock, its threads and its child
processes, and a place in the broker's life. If no log directory is left, the broker cannot go on.
"""

from __future__ import annotations

import asyncio

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.settings import SettingValues
from headwater.base.threads import RunInThread
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.storage.compaction.cleaner import Cleaner, RunJob
from headwater.storage.compaction.cleaner_process import CleanerProcesses
from headwater.storage.compaction.compaction_plan import CleanerConfig
from headwater.storage.directories.log_directories import LogDirectories, NoLogDirectoryError
from headwater.storage.directories.maintenance import Maintenance
from headwater.storage.directories.move_pace import MovePace
from headwater.storage.partition_log import PartitionLog

_CLEANER_SETTINGS = (
    "log.cleaner.threads",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.backoff.ms",
)


def cleaner_config(settings: SettingValues) -> CleanerConfig:
    """The cleaner's settings as it reads them."""
    return CleanerConfig(
        threads=max(settings.integer("log.cleaner.threads"), 1),
        dedupe_buffer_bytes=settings.integer("log.cleaner.dedupe.buffer.size"),
        load_factor=settings.number("log.cleaner.io.buffer.load.factor"),
        io_buffer_bytes=settings.integer("log.cleaner.io.buffer.size"),
        io_max_bytes_per_second=settings.number("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=settings.integer("log.cleaner.backoff.ms"),
    )


class LogUpkeep:
    """Runs until it is stopped; its owner is the broker."""

    def __init__(
        self,
        directories: LogDirectories,
        settings: BrokerSettings,
        clock: Clock,
        run_in_thread: RunInThread,
        tasks: BackgroundTasks,
        run_job: RunJob | None = None,
    ) -> None:
        self._directories = directories
        self._clock = clock
        self._run_in_thread = run_in_thread
        self._stop = asyncio.Event()
        self._background = tasks
        self._tasks: list[asyncio.Task[None]] = []
        self._processes = CleanerProcesses()
        quota = "alter.log.dirs.replication.quota.window"
        pace = MovePace(
            lambda: settings.integer("replica.alter.log.dirs.io.max.bytes.per.second"),
            clock,
            window_count=settings.integer(f"{quota}.num"),
            window_ms=settings.integer(f"{quota}.size.seconds") * 1000,
        )
        self.maintenance = Maintenance(directories, settings.values, pace)
        self.cleaner = Cleaner(
            cleaner_config(settings.values),
            clock,
            self._processes.run if run_job is None else run_job,
            run_in_thread,
            self._save_progress,
            on_idle=self._processes.close_idle,
            first_dirty_offsets=directories.cleaner_offsets(),
        )
        self._is_cleaning = settings.boolean("log.cleaner.enable")
        settings.subscribe(
            _CLEANER_SETTINGS,
            lambda _names: self._set_cleaner_config(cleaner_config(settings.values)),
        )

    def start(self) -> None:
        maintenance = self.maintenance.run(self._stop, self._clock, self._run_in_thread)
        self._tasks.append(
            self._background.start("log maintenance", maintenance, expected=(NoLogDirectoryError,))
        )
        if self._is_cleaning:
            cleaning = self.cleaner.run(lambda: self._directories, self._stop)
            self._tasks.append(self._background.start("log cleaner", cleaning))

    async def stop(self) -> None:
        """Wait for what is under way, but not for a compaction: that starts over the next time."""
        self._stop.set()
        self._processes.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _save_progress(self, log: PartitionLog, offset: int) -> None:
        await self._directories.save_cleaner_offset(log, offset, self._run_in_thread)

    def _set_cleaner_config(self, config: CleanerConfig) -> None:
        self.cleaner.config = config
