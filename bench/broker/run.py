"""One run of the benchmark: what every measurement is given, and how the sides take turns."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench.broker.java_clients import JavaClients
from bench.broker.results import Results
from bench.broker.servers import Pair
from bench.broker.sizes import Sizes

Side = TypeVar("Side")
Value = TypeVar("Value")

CLIENTS = ("java", "librdkafka")
#: A machine with more to do than this before the run starts gives figures that mean little.
LOAD_MAX = 0.5


@dataclass(slots=True)
class Run:
    pair: Pair
    sizes: Sizes
    results: Results
    #: Of `CLIENTS`, those to measure with.
    clients: tuple[str, ...] = CLIENTS
    java: JavaClients = field(default_factory=JavaClients)
    _start_s: float = field(default_factory=time.monotonic)

    def say(self, line: str) -> None:
        """A line of progress."""
        minutes, seconds = divmod(int(time.monotonic() - self._start_s), 60)
        print(f"{minutes:3d}:{seconds:02d}  {line}", file=sys.stderr, flush=True)

    def attempt(self, what: str, work: Callable[[], None]) -> None:
        """Measure something; if that fails, the rest of the run goes on without it."""
        self.say(what)
        try:
            work()
        except Exception as error:
            self.results.failures.append(f"{what}: {error}")
            self.say(f"{what} failed: {error}")


def take_turns(
    sides: tuple[Side, ...], round_count: int, measure: Callable[[Side], Value]
) -> tuple[list[Value], list[Value]]:
    """What each side came to in each round; the one that goes first changes."""
    values: tuple[list[Value], list[Value]] = ([], [])
    for number in range(round_count):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            settle_disk()
            values[side].append(measure(sides[side]))
    return values


def settle_disk() -> None:
    """Let the disk finish with what was written before, so that it is not charged to the next."""
    os.sync()


def interrupt(_number: int, _frame: object) -> None:
    """For a signal that is to end a run as Ctrl-C does."""
    raise KeyboardInterrupt
