"""The log of a broker's process, from its first line to its last.

Whoever logs puts a record into a queue and goes on: a thread writes it, so that neither a slow disk
nor a terminal that stands still holds up the event loop. The queue is bounded. If it is full, lines
are dropped, and the next one that is written is preceded by one that says how many.
"""

from __future__ import annotations

import copy
import logging
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from typing import Final, NamedTuple

from headwater.cli.serve.command import LOG_FILE_BYTES_MAX, LOG_FILE_COUNT
from headwater.cli.serve.log_file import open_log_file
from headwater.cli.serve.log_formats import complete, formatter_of

QUEUED_MAX: Final = 10_000
#: A process that ends waits so long for somebody who does not read its log.
_CLOSE_S_MAX: Final = 5.0


class LogOptions(NamedTuple):
    """Where the log goes, and how."""

    level: str = "INFO"
    format: str = "text"
    #: None for standard error.
    path: str | None = None
    file_bytes_max: int = LOG_FILE_BYTES_MAX
    file_count: int = LOG_FILE_COUNT

    @property
    def is_for_people(self) -> bool:
        """Whether standard error is read by a person: then sentences may stand there plainly."""
        return self.path is not None or self.format == "text"


DEFAULT_LOG: Final = LogOptions()


@contextmanager
def broker_log(options: LogOptions) -> Iterator[None]:
    """Have all that is logged go where the options say; `SettingError` if that cannot be."""
    target = _target(options)
    lines: queue.Queue[logging.LogRecord] = queue.Queue(QUEUED_MAX)
    intake = LogIntake(lines)
    writer = LogWriter(lines, target, intake)
    root = logging.getLogger()
    level_before = root.level
    writer.start()
    root.addHandler(intake)
    root.setLevel(options.level)
    try:
        yield
    finally:
        root.setLevel(level_before)
        root.removeHandler(intake)
        writer.finish()


def _target(options: LogOptions) -> logging.Handler:
    target: logging.Handler
    if options.path is None:
        target = logging.StreamHandler(sys.stderr)
    else:
        target = open_log_file(options.path, options.file_bytes_max, options.file_count)
    target.setFormatter(formatter_of(options.format))
    return target


class LogIntake(QueueHandler):
    """Takes what is logged, in any thread."""

    def __init__(self, lines: queue.Queue[logging.LogRecord]) -> None:
        super().__init__(lines)
        self.dropped_count = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        own = copy.copy(record)
        complete(own)
        return own

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.dropped_count += 1

    def take_dropped(self) -> int:
        """How many were dropped since somebody asked."""
        with self._guard():
            count, self.dropped_count = self.dropped_count, 0
        return count

    @contextmanager
    def _guard(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()


class LogWriter(QueueListener):
    """The thread that writes."""

    def __init__(
        self,
        lines: queue.Queue[logging.LogRecord],
        target: logging.Handler,
        intake: LogIntake,
    ) -> None:
        super().__init__(lines, target)
        self._target = target
        self._intake = intake

    def handle(self, record: logging.LogRecord) -> None:
        if self._intake.dropped_count:
            text = f"{self._intake.take_dropped():,} lines were dropped: the log is written slowly."
            told = logging.LogRecord(__name__, logging.WARNING, "", 0, text, None, None)
            super().handle(told)
        super().handle(record)

    def enqueue_sentinel(self) -> None:
        # The queue may be full; whoever stops this waits in a thread, and not forever.
        self.queue.put(self._sentinel)  # type: ignore[attr-defined]

    def finish(self) -> None:
        """Write what is left, for as long as somebody reads it."""
        stopping = threading.Thread(target=self.stop, name="end of the log", daemon=True)
        stopping.start()
        stopping.join(_CLOSE_S_MAX)
        if not stopping.is_alive():
            self._target.close()
