"""Ctrl-C and SIGTERM for commands that end in an orderly way: the task is cancelled, once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def cancelled_by_signals() -> Iterator[None]:
    """A first signal cancels the current task; a second one ends the process as usual."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def interrupt() -> None:
        _restore(loop)
        if task is not None:
            task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        _restore(loop)


def _restore(loop: asyncio.AbstractEventLoop) -> None:
    for number in SIGNALS:
        loop.remove_signal_handler(number)
