"""The file that a broker's log goes to, with `--log-file`.

It is turned over when it is full: the broker renames it and begins another one. Or somebody else
does that, as logrotate: then the broker looks before each line whether the file is still the one
that it has open. The standard library has a handler for either.

A disk that is full costs lines, and nothing else. Standard error hears of it now and then.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from typing import Final

from headwater.base.line_budget import LineBudget
from headwater.base.settings import SettingError

_COMPLAINT_INTERVAL_S: Final = 60.0


def open_log_file(path: str, bytes_max: int, old_count: int) -> logging.Handler:
    """Turned over at `bytes_max` with so many old ones kept; with 0, by somebody else."""
    try:
        if bytes_max:
            return RotatingLogFile(
                path, maxBytes=bytes_max, backupCount=old_count, encoding="utf-8"
            )
        return WatchedLogFile(path, encoding="utf-8")
    except OSError as error:
        raise SettingError(
            f"The log file {path} cannot be written: {error.strerror or error}."
        ) from error


class _LogFile(logging.FileHandler):
    """What both kinds do about a file that cannot be written."""

    _complaints: LineBudget | None = None

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        if not _ends_with_line(self.baseFilename):
            # A full disk, or a crash, has left half a line: nothing may be written behind it.
            stream.write("\n")
        return stream

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._let_go()
        if self._complaints is None:
            self._complaints = LineBudget(1, _COMPLAINT_INTERVAL_S)
        left_out = self._complaints.take(time.monotonic())
        if left_out is not None and sys.stderr is not None:
            reason = error.strerror or str(error)
            lines = f"{left_out + 1} lines are" if left_out else "A line is"
            with contextlib.suppress(OSError, ValueError):
                print(
                    f"headwater: The log file {self.baseFilename} cannot be written: {reason}. "
                    f"{lines} lost.",
                    file=sys.stderr,
                    flush=True,
                )

    def _let_go(self) -> None:
        """Open it anew for the next line: what is half written in this stream is lost."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.close()


class RotatingLogFile(_LogFile, RotatingFileHandler):
    """Turned over by the broker."""


class WatchedLogFile(_LogFile, WatchedFileHandler):
    """Turned over by somebody else."""


def _ends_with_line(path: str) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
