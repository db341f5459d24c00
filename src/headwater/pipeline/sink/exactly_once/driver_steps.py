"""What a driver does when the tasks of a batch are done, or when the batch has failed.

It takes the query, which fences other drivers, makes its decision unless the batch was decided
before, and then ends what the tasks left open: the decision's transactions are committed, all
others aborted. Whatever it dies of, the same batch comes again, and the next driver goes on here.

When may a transaction be aborted? Not while anybody may still decide that it counts.
- Those of its own run only this driver could decide on, and it has just done so.
- Those of other runs may be of a driver that is thought dead and is not, or of a newer one. A
  decision is refused if another one was made since its tasks began (their version), so those that
  were open before a decision of this driver can never be decided on after it. Hence: look for
  them, then decide, then abort those and no others. Where the decision exists already it is made
  again for this, with the same content.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Any

from headwater.pipeline.sink.exactly_once.decision import Pointer, make_decision
from headwater.pipeline.sink.exactly_once.effects import (
    Decide,
    DriverEffect,
    End,
    ListOpen,
    ReadEntries,
    ReadPointer,
    TakeQuery,
)
from headwater.pipeline.sink.exactly_once.task_name import Prepared
from headwater.pipeline.sink.exactly_once.task_steps import Written, superseded

Steps = Generator[DriverEffect, Any, None]


def commit_steps(batch: int, run: str, written: Collection[Written]) -> Steps:
    """All tasks are done. Raises `SupersededError` if another run has decided meanwhile."""
    yield TakeQuery()
    pointer: Pointer = yield ReadPointer()
    if pointer.batch > batch:
        raise superseded(batch, pointer)
    found: frozenset[Prepared] = yield ListOpen()
    if pointer.batch == batch:
        entries: frozenset[Prepared] = yield ReadEntries(pointer)
        leftovers = found - entries
        if any(leftover.task.run != run for leftover in leftovers):
            yield Decide(make_decision(batch, entries))
    else:
        if any(task.version != pointer.version for task in written):
            raise superseded(batch, pointer)
        entries = frozenset(task.prepared for task in written)
        leftovers = found - entries
        if leftovers:
            leftovers = yield from _finish_former(pointer, leftovers)
        if entries or leftovers:
            yield Decide(make_decision(batch, entries))
    yield from _end(entries, is_commit=True)
    # Those of this run are looked for once more, so that none can come later: an attempt that
    # writes after the decision sees it, and ends its transaction by itself.
    now: frozenset[Prepared] = yield ListOpen()
    own = {leftover for leftover in now - entries if leftover.task.run == run}
    yield from _end(leftovers | own, is_commit=False)


def abort_steps(batch: int, run: str) -> Steps:
    """The batch has failed, perhaps in its commit and after its decision, which then stands.

    It is made again in any case, with whatever content it has: a commit of this run that is still
    on its way can then decide no more, and a task that is not done yet sees it and gives up.
    """
    yield TakeQuery()
    pointer: Pointer = yield ReadPointer()
    entries: frozenset[Prepared] = yield ReadEntries(pointer)
    yield Decide(make_decision(pointer.batch, entries))
    if pointer.batch == batch:
        yield from _end(entries, is_commit=True)
    found: frozenset[Prepared] = yield ListOpen()
    own = {leftover for leftover in found - entries if leftover.task.run == run}
    yield from _end(own, is_commit=False)


def _finish_former(
    pointer: Pointer, leftovers: frozenset[Prepared]
) -> Generator[DriverEffect, Any, frozenset[Prepared]]:
    """Commit what the decision before this one has and nobody ended; the rest is returned.

    Spark commits a batch before it begins the next one, so there is something only if a checkpoint
    was tampered with. It has to be done before the decision is replaced.
    """
    former: frozenset[Prepared] = yield ReadEntries(pointer)
    yield from _end(leftovers & former, is_commit=True)
    return leftovers - former


def _end(prepared: Collection[Prepared], *, is_commit: bool) -> Steps:
    if prepared:
        yield End(tuple(sorted(prepared)), is_commit)
