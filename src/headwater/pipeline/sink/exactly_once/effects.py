"""What tasks and drivers ask of the cluster, as values: the protocol yields them one by one.

`task_steps` and `driver_steps` are generators that yield an effect and are sent its result. A shell
brings it about with real clients; tests do so with a small model of a cluster, and let many tasks
and drivers take turns, or stop, between any two effects.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.pipeline.sink.exactly_once.decision import Decision, Pointer
from headwater.pipeline.sink.exactly_once.task_name import Prepared


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Become the one producer of this task's id in the slot of that number, and fence those before.
    The result is whether nothing is open under it: what is, is kept and left alone."""

    slot: int


@dataclass(frozen=True, slots=True)
class AbortOwn:
    """Abort the transaction that this task has written."""


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Write all rows in a transaction of this task and leave it open: the result."""


@dataclass(frozen=True, slots=True)
class SkipRows:
    """Take all rows and write none. Spark computes them only if they are taken, and with them what
    the operators before the sink remember."""


@dataclass(frozen=True, slots=True)
class TakeQuery:
    """Become the one driver of the query and fence those before. A decision that one of them has
    under way is over after this, made or not made."""


@dataclass(frozen=True, slots=True)
class ReadPointer:
    """Where the last decision is: a `Pointer`. Waits for one that is under way."""


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """The transactions of the decision at this pointer: a set of `Prepared`."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class ListOpen:
    """All open transactions of tasks of this query: a set of `Prepared`."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Make a decision, unless a newer driver has taken the query over since `TakeQuery`."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class End:
    """Commit or abort those of these transactions that are still open, one after the other. Nothing
    happens to any other transaction of the same tasks."""

    prepared: tuple[Prepared, ...]
    is_commit: bool


TaskEffect = ReadPointer | SkipRows | TakeOver | WriteRows | AbortOwn
DriverEffect = TakeQuery | ReadPointer | ReadEntries | ListOpen | Decide | End
