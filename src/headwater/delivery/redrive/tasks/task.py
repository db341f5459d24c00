"""A redrive task, as its records in the topic of tasks tell it.

What is wanted of it and how far it is are different records: whoever gives orders writes the first,
its runner the second, the latter in the transactions that send letters. A runner that has not been
heard of for a while is gone; its task is interrupted, and can be carried on by another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from headwater.delivery.redrive.letters.letter_reader import Span
from headwater.delivery.redrive.tasks.plan import RedrivePlan

#: A runner tells of itself so often, and who has not for so long is gone.
BEAT_S: Final = 3.0
SILENCE_MS: Final = 15_000
_COMPLAINTS_MAX: Final = 5


class Wanted(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class State(StrEnum):
    #: Nobody has begun with it.
    NEW = "new"
    RUNNING = "running"
    PAUSED = "paused"
    #: Its runner is gone; it can be resumed.
    INTERRUPTED = "interrupted"
    #: It met an error; it can be resumed.
    FAILED = "failed"
    STOPPED = "stopped"
    DONE = "done"

    @property
    def is_final(self) -> bool:
        return self in (State.STOPPED, State.DONE)


@dataclass(slots=True)
class Counts:
    """What became of the letters that were read; each is in one of the others."""

    read: int = 0
    sent: int = 0
    #: The filter does not mean them.
    other: int = 0
    #: An earlier task has sent them.
    already: int = 0
    #: They came back too often.
    loops: int = 0
    #: Nobody told where they were at first, or which group they are of.
    homeless: int = 0
    #: Their topic is not there, or does not take them.
    refused: int = 0
    #: The function that was given left them out.
    left_out: int = 0

    def as_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Counts:
        return cls(**{name: int(document.get(name, 0)) for name in cls.__slots__})


@dataclass(slots=True)
class Progress:
    """How far a task is: written whole each time."""

    state: State = State.NEW
    beat_ms: int = 0
    counts: Counts = field(default_factory=Counts)
    #: The next offset to read, by partition.
    positions: dict[int, int] = field(default_factory=dict)
    #: The first few reasons why letters were refused.
    complaints: list[str] = field(default_factory=list)
    error: str | None = None

    def complain(self, sentence: str) -> None:
        if sentence not in self.complaints and len(self.complaints) < _COMPLAINTS_MAX:
            self.complaints.append(sentence)

    def copy(self) -> Progress:
        return replace(
            self,
            counts=replace(self.counts),
            positions=dict(self.positions),
            complaints=list(self.complaints),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "state": self.state.value,
            "beat_ms": self.beat_ms,
            "counts": self.counts.as_json(),
            "positions": {str(partition): at for partition, at in self.positions.items()},
            "complaints": self.complaints,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Progress:
        error = document["error"]
        return cls(
            State(document["state"]),
            int(document["beat_ms"]),
            Counts.from_json(document["counts"]),
            {int(partition): int(at) for partition, at in document["positions"].items()},
            [str(each) for each in document["complaints"]],
            None if error is None else str(error),
        )


@dataclass(frozen=True, slots=True)
class RedriveTask:
    """A task, as it was when somebody looked."""

    id: str
    plan: RedrivePlan
    #: The topic's own id: one that was deleted and made anew has other letters.
    source_id: str
    #: What is read, by partition.
    spans: Mapping[int, Span]
    created_ms: int
    wanted: Wanted = Wanted.RUNNING
    progress: Progress = field(default_factory=Progress)

    def is_alive(self, now_ms: int) -> bool:
        """Whether somebody runs it."""
        is_at_work = self.progress.state in (State.RUNNING, State.PAUSED)
        return is_at_work and now_ms - self.progress.beat_ms < SILENCE_MS

    def state(self, now_ms: int) -> State:
        """What to call it."""
        told = self.progress.state
        if told.is_final or self.is_alive(now_ms):
            return told
        if self.wanted is Wanted.STOPPED:
            return State.STOPPED
        if told is State.NEW:
            return told if now_ms - self.created_ms < SILENCE_MS else State.INTERRUPTED
        return State.FAILED if told is State.FAILED else State.INTERRUPTED

    @property
    def share_done(self) -> float:
        """How much of what is to be read was read, from 0 to 1."""
        whole = sum(span.end - span.first for span in self.spans.values())
        positions = self.progress.positions
        done = sum(
            positions.get(partition, span.first) - span.first
            for partition, span in self.spans.items()
        )
        return done / whole if whole else 1.0

    def order_json(self) -> dict[str, Any]:
        """The record of what is wanted."""
        return {
            "plan": self.plan.as_json(),
            "source_id": self.source_id,
            "spans": {str(partition): list(span) for partition, span in self.spans.items()},
            "created_ms": self.created_ms,
            "wanted": self.wanted.value,
        }

    @classmethod
    def from_order(cls, task_id: str, document: Mapping[str, Any]) -> RedriveTask:
        return cls(
            task_id,
            RedrivePlan.from_json(document["plan"]),
            str(document["source_id"]),
            {
                int(partition): Span(int(first), int(end))
                for partition, (first, end) in document["spans"].items()
            },
            int(document["created_ms"]),
            Wanted(document["wanted"]),
        )
