"""Opening a broker's logs, and what is told of it: how far it is, and in the end what it took.

After a crash the ends of logs are read again, which takes long if they are many or large. Whoever
waits for the broker sees it go on: in its output, at `/ready`, and in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_directory import LoadProgress

_logger = logging.getLogger(__name__)

_LINE_INTERVAL_MS: Final = 10_000.0

OnProgress = Callable[[LoadProgress], None]


async def load_logs(
    directories: LogDirectories, clock: Clock, run_in_thread: RunInThread, on_progress: OnProgress
) -> None:
    """Open all logs; every log that is next is told to `on_progress`."""
    begun_ms = told_ms = clock.monotonic_ms()

    def tell(progress: LoadProgress) -> None:
        nonlocal told_ms
        now_ms = clock.monotonic_ms()
        if now_ms - told_ms >= _LINE_INTERVAL_MS:
            told_ms = now_ms
            _logger.info(
                "%d of %d logs are open after %d s. The next one is %s.",
                progress.done,
                progress.total,
                (now_ms - begun_ms) / 1000,
                progress.partition,
            )
        on_progress(progress)

    await directories.load_in_thread(clock.wall_ms(), run_in_thread, tell)
    elapsed_ms = clock.monotonic_ms() - begun_ms
    for directory in directories.online():
        is_crash = directory.recovered.log_count > 0 and not directory.was_clean
        how = ", after an unclean stop" if is_crash else ""
        _logger.info("%s: %s%s, in %d ms.", directory.path, directory.recovered, how, elapsed_ms)
