"""What every run of a benchmark has: an outcome that it fills, and a clock to tell progress by."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a run went; the figures are the benchmark's own."""

    #: What could not be measured, and why.
    failures: list[str] = field(default_factory=list)
    is_interrupted: bool = False


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


@dataclass(slots=True)
class BenchRun(Generic[AnyOutcome]):
    results: AnyOutcome
    _start_s: float = field(default_factory=time.monotonic, init=False)

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
            reason, progress = self._words_for(error)
            self.results.failures.append(f"{what}: {reason}")
            self.say(f"{what} failed: {progress}")

    def _words_for(self, error: Exception) -> tuple[str, str]:
        """What is said of it in the results, and as progress."""
        return str(error), str(error)
