"""What a task does: write its rows in a transaction, and leave that open for the driver to decide.

It first looks what was decided last. If its own batch is, it has nothing to write: a former run of
the query got that far and died. Then it takes a transactional id over. Under that another attempt
may have a transaction open, which counts or does not: only a driver can tell, so the task leaves it
alone and takes the next id. (Spark does not tell tasks in Python which attempt of its *stage* they
belong to, so attempts can be alike in all that a task knows of itself.)

After writing, the task looks again. If something was decided meanwhile, the driver that did so may
have looked for leftovers before this transaction was there, so the task ends it by itself.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from headwater.pipeline.sink.exactly_once.decision import Pointer
from headwater.pipeline.sink.exactly_once.effects import (
    AbortOwn,
    ReadPointer,
    SkipRows,
    TakeOver,
    TaskEffect,
    WriteRows,
)
from headwater.pipeline.sink.exactly_once.task_name import Prepared
from headwater.pipeline.sink.sink_errors import SupersededError

#: How many ids a task tries.
SLOT_COUNT: Final = 16


@dataclass(frozen=True, slots=True)
class Written:
    """The rows wait in this transaction; nothing had been decided since the version."""

    prepared: Prepared
    version: int


def task_steps(batch: int) -> Generator[TaskEffect, Any, Written | None]:
    """Returns None if the batch is decided already. Raises `SupersededError` in a late task."""
    pointer: Pointer = yield ReadPointer()
    if pointer.batch > batch:
        raise superseded(batch, pointer)
    if pointer.batch == batch:
        yield SkipRows()
        return None
    for slot in range(SLOT_COUNT):
        if (yield TakeOver(slot)):
            break
    else:
        raise SupersededError(
            f"Batch {batch} cannot be written: {SLOT_COUNT} attempts of this task have left "
            "transactions open, and no driver has ended them."
        )
    prepared: Prepared = yield WriteRows()
    now: Pointer = yield ReadPointer()
    if now.version != pointer.version:
        yield AbortOwn()
        raise superseded(batch, now)
    return Written(prepared, pointer.version)


def superseded(batch: int, pointer: Pointer) -> SupersededError:
    return SupersededError(
        f"Batch {batch} cannot be written by this run of the query: another run, or a failed "
        f"commit of this one, has decided since, and batch {pointer.batch} was the last. Only one "
        "run may use a checkpoint at a time."
    )
