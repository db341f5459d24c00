"""How long a pipeline runs and what it reads: for ever, all there is once, or a range of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Continuous:
    """Until it is stopped; it goes on where the pipeline was."""

    @property
    def folder(self) -> str:
        """Where such a run lives inside the pipeline's directory of state."""
        return ""


@dataclass(frozen=True, slots=True)
class Once:
    """What is there now, from where the pipeline was, and then it ends.

    It has the checkpoints of `Continuous`, so the two may take turns.
    """

    @property
    def folder(self) -> str:
        """Where such a run lives inside the pipeline's directory of state."""
        return ""


@dataclass(frozen=True, slots=True)
class Backfill:
    """The records whose timestamp is at least `from_ms` and less than `until_ms`, and then it ends.

    Each range has checkpoints of its own: a backfill that was broken off goes on, and the place of
    the pipeline itself does not change. It may run beside the pipeline.
    """

    from_ms: int
    until_ms: int

    @property
    def folder(self) -> str:
        """Where such a run lives inside the pipeline's directory of state."""
        return f"backfill/{self.from_ms}-{self.until_ms}"


RunMode: TypeAlias = Continuous | Once | Backfill
