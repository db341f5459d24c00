"""A thread that makes changes durable some time after they were made, many with one fsync."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from headwater.client.spool.errors import SpoolError


class IntervalSync:
    """Calls `sync` at most `interval_ms` after a change, and rests while there is none."""

    def __init__(self, sync: Callable[[], None], interval_ms: int) -> None:
        self._sync = sync
        self._interval_s = interval_ms / 1000
        self._has_changed = threading.Event()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-spool-sync", daemon=True)
        self._thread.start()

    def note_change(self) -> None:
        if not self._has_changed.is_set():
            self._has_changed.set()

    def close(self) -> None:
        self._is_closed.set()
        self._has_changed.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._has_changed.wait()
            if self._is_closed.wait(self._interval_s):
                return
            self._has_changed.clear()
            # The spool remembers that it failed and tells whoever appends next.
            with contextlib.suppress(SpoolError):
                self._sync()
