"""The producers of this process that nobody has closed, and what becomes of them.

A producer takes a record long before it is written, so one that is forgotten would lose what it
still has, and nobody would hear of it. Therefore:

- The end of the program writes what it can, for up to `exit.flush.timeout.ms`, of all producers at
  once, and logs how many records were not written. Python calls us (`atexit`) when all threads but
  daemons have ended, so that what they sent is included, and while our daemon threads still run;
  afterwards they would be frozen. No thread is started then, which Python 3.12 on forbids.
- A producer that is dropped (its object is collected) raises a `ResourceWarning`, writes what it
  has in the background and ends. The end of the program waits for it as for any other.
- A fork leaves the child a copy of every producer, but none of their threads: it must not write
  what is the parent's to write, and cannot use them.

`multiprocessing` ends its children without `atexit` before Python 3.13, but has finalizers of its
own, which are used in such a child.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import Final, Protocol

from headwater.base.clocks import SystemClock

_logger = logging.getLogger(__name__)


#: Waits for so many seconds at most, and tells in a sentence what was lost, if anything.
WaitForExit = Callable[[float], str]

#: How much of the time that the end of the program has is for writing; the rest is for closing.
WRITING_SHARE: Final = 0.9


class Engine(Protocol):
    """What a producer runs on, as the end of the program sees it."""

    @property
    def name(self) -> str:
        """How a person knows this producer."""
        ...

    @property
    def exit_flush_s(self) -> float:
        """How long the end of the program may wait for it."""
        ...

    def begin_exit(self) -> WaitForExit:
        """Begin to write what is left, without waiting; returns how to wait for it."""
        ...

    def drop(self) -> None:
        """Nobody can close it any more; called by the garbage collector, so it must not wait."""
        ...

    def forked(self) -> None:
        """This is a child's copy, without threads."""
        ...


class OpenProducers:
    """One for a process. Each of its steps is one operation of a dict, so it needs no lock, which a
    fork or the garbage collector might find taken."""

    def __init__(self) -> None:
        self._engines: dict[Engine, None] = {}
        self._is_hooked = False

    def add(self, engine: Engine) -> None:
        self._hook_into_multiprocessing()
        self._engines[engine] = None

    def discard(self, engine: Engine) -> None:
        """It is closed, or is about to be."""
        self._engines.pop(engine, None)

    def drop(self, engine: Engine) -> None:
        """The producer of that engine is gone; it may have been closed."""
        if engine in self._engines:
            engine.drop()
            warnings.warn(
                f"{engine.name} was not closed: it goes on until what was sent is written.",
                ResourceWarning,
                stacklevel=2,
            )

    def flush(self) -> None:
        """Write what is left, within the time of the most patient producer."""
        clock = SystemClock()
        engines = sorted(self._engines, key=lambda engine: engine.exit_flush_s)
        self._engines.clear()
        began_ms = clock.monotonic_ms()
        is_interrupted = False
        waits = [(engine.exit_flush_s, engine.begin_exit()) for engine in engines]
        for timeout_s, wait in waits:
            spent_s = (clock.monotonic_ms() - began_ms) / 1000
            try:
                lost = wait(0.0 if is_interrupted else max(0.0, timeout_s - spent_s))
            except KeyboardInterrupt:
                # Somebody is tired of waiting, but should hear what that costs.
                is_interrupted = True
                lost = wait(0.0)
            if lost:
                _logger.warning("%s", lost)

    def forget_the_parents(self) -> None:
        """After a fork, in the child."""
        engines = list(self._engines)
        self._engines.clear()
        self._is_hooked = False
        for engine in engines:
            engine.forked()

    def _hook_into_multiprocessing(self) -> None:
        process = sys.modules.get("multiprocessing.process")
        if self._is_hooked or process is None or process.parent_process() is None:
            return
        from multiprocessing.util import Finalize

        self._is_hooked = True
        Finalize(None, self.flush, exitpriority=0)


OPEN_PRODUCERS: Final = OpenProducers()

# On import, so that what a program itself registers comes first and can still send.
atexit.register(OPEN_PRODUCERS.flush)
os.register_at_fork(after_in_child=OPEN_PRODUCERS.forget_the_parents)
