"""The protocol on a model: many interleavings of tasks, drivers, crashes and zombies.

What holds is checked with the protocol as it is, and the checks with protocols that have a fault
each, which some seed has to find.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Any

import pytest

from headwater.pipeline.sink.exactly_once.decision import make_decision
from headwater.pipeline.sink.exactly_once.driver_steps import abort_steps, commit_steps
from headwater.pipeline.sink.exactly_once.effects import (
    AbortOwn,
    Decide,
    End,
    ListOpen,
    ReadEntries,
    ReadPointer,
    TakeOver,
    TakeQuery,
    WriteRows,
)
from headwater.pipeline.sink.exactly_once.task_steps import Written, superseded, task_steps
from tests.support.models.sink_model import Protocol, World
from tests.support.tiers import rounds

SEEDS = rounds(300, 5000)
SEEDS_FOR_FAULTS = 3000
#: Faults that are seldom found are looked for from here on.
FIRST_SEED = {
    "a task always writes": 290,
    "abort makes no new version": 1020,
    "a task does not look again": 2280,
}


def test_each_row_is_there_once_and_nothing_is_left_open() -> None:
    crashes = runs = 0
    for seed in range(SEEDS):
        world = World(seed, Protocol())
        world.play()
        assert world.problems() == [], f"seed {seed}"
        crashes += world.crashes
        runs += world.run_count
    # The seeds are of use only if much goes wrong.
    assert crashes > 3 * SEEDS
    assert runs > 3 * SEEDS


def replaced(steps: Generator[Any, Any, Any], change: Any) -> Generator[Any, Any, Any]:
    """The same steps, but `change` may answer for an effect: a pair of True and its answer."""
    answer = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration as end:
            return end.value
        is_answered, answer = change(effect)
        if not is_answered:
            answer = yield effect


def commit_that_ends_before_it_decides(
    batch: int, run: str, written: Collection[Written]
) -> Generator[Any, Any, None]:
    yield TakeQuery()
    pointer = yield ReadPointer()
    if pointer.batch < batch:
        if written:
            yield End(tuple(task.prepared for task in written), is_commit=True)
        yield Decide(make_decision(batch, [task.prepared for task in written]))


def commit_without_a_look_at_the_decision(
    batch: int, run: str, written: Collection[Written]
) -> Generator[Any, Any, None]:
    yield TakeQuery()
    yield Decide(make_decision(batch, [task.prepared for task in written]))
    if written:
        yield End(tuple(task.prepared for task in written), is_commit=True)


def commit_that_ignores_versions(
    batch: int, run: str, written: Collection[Written]
) -> Generator[Any, Any, None]:
    """As if nobody could have aborted the transactions of a run but itself."""
    pointer = None
    steps = commit_steps(batch, run, written)
    effect = steps.send(None)
    while True:
        answer = yield effect
        if isinstance(effect, ReadPointer) and pointer is None:
            pointer = answer
            steps.close()
            now = [Written(task.prepared, pointer.version) for task in written]
            steps = commit_steps(batch, run, now)
            assert isinstance(steps.send(None), TakeQuery)
            assert isinstance(steps.send(None), ReadPointer)
        try:
            effect = steps.send(answer)
        except StopIteration:
            return


def commit_that_looks_after_its_decision(
    batch: int, run: str, written: Collection[Written]
) -> Generator[Any, Any, None]:
    """Aborts all that is open now, also what other runs have begun since."""
    yield from commit_steps(batch, run, written)
    pointer = yield ReadPointer()
    entries = yield ReadEntries(pointer)
    leftovers = sorted((yield ListOpen()) - entries)
    if leftovers:
        yield End(tuple(leftovers), is_commit=False)


def commit_that_leaves_the_rest(
    batch: int, run: str, written: Collection[Written]
) -> Generator[Any, Any, None]:
    yield from replaced(
        commit_steps(batch, run, written),
        lambda effect: (isinstance(effect, End) and not effect.is_commit, None),
    )


def abort_that_ignores_the_decision(batch: int, run: str) -> Generator[Any, Any, None]:
    yield TakeQuery()
    leftovers = sorted(found for found in (yield ListOpen()) if found.task.run == run)
    if leftovers:
        yield End(tuple(leftovers), is_commit=False)


def abort_without_a_new_version(batch: int, run: str) -> Generator[Any, Any, None]:
    """A commit of the same run that is thought dead may then decide on what was aborted."""
    yield from replaced(abort_steps(batch, run), lambda effect: (isinstance(effect, Decide), None))


def task_that_does_not_look_again(batch: int) -> Generator[Any, Any, Written | None]:
    looked: list[Any] = []
    steps = task_steps(batch)
    answer = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if isinstance(effect, ReadPointer) and looked:
            answer = looked[0]
        else:
            answer = yield effect
            if isinstance(effect, ReadPointer):
                looked.append(answer)


def task_that_always_writes(batch: int) -> Generator[Any, Any, Written | None]:
    pointer = yield ReadPointer()
    while not (yield TakeOver(0)):
        pass
    prepared = yield WriteRows()
    return Written(prepared, pointer.version)


def task_that_writes_over_what_is_open(batch: int) -> Generator[Any, Any, Written | None]:
    """As if what is open under its id could only be of an earlier batch."""
    pointer = yield ReadPointer()
    if pointer.batch >= batch:
        return None
    if not (yield TakeOver(0)):
        yield AbortOwn()
        yield TakeOver(0)
    prepared = yield WriteRows()
    now = yield ReadPointer()
    if now.version != pointer.version:
        yield AbortOwn()
        raise superseded(batch, now)
    return Written(prepared, pointer.version)


FAULTS = {
    "an id is taken over without keeping": Protocol(keeps_prepared=False),
    "drivers are not fenced": Protocol(fences_drivers=False),
    "ends before the decision": Protocol(commit=commit_that_ends_before_it_decides),
    "no look at the decision": Protocol(commit=commit_without_a_look_at_the_decision),
    "versions are ignored": Protocol(commit=commit_that_ignores_versions),
    "the rest is left open": Protocol(commit=commit_that_leaves_the_rest),
    "aborts what others began": Protocol(commit=commit_that_looks_after_its_decision),
    "abort ignores the decision": Protocol(abort=abort_that_ignores_the_decision),
    "abort makes no new version": Protocol(abort=abort_without_a_new_version),
    "a task does not look again": Protocol(task=task_that_does_not_look_again),
    "a task always writes": Protocol(task=task_that_always_writes),
    "a task aborts what it finds": Protocol(task=task_that_writes_over_what_is_open),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault: str) -> None:
    first = FIRST_SEED.get(fault, 0)
    for seed in range(first, first + SEEDS_FOR_FAULTS):
        world = World(seed, FAULTS[fault])
        world.play()
        if world.problems():
            return
    pytest.fail(f"no seed has found it: {fault}")
