"""What a query has decided last: a batch, and the transactions that belong to it.

It is a record with the query as its key; where it lies is the query's *pointer*. That is also its
version: whoever knows the pointer knows whether something was decided since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headwater.base.checks import check
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.pipeline.sink.exactly_once.task_name import Prepared, QueryName, TaskName

NO_BATCH: Final = -1
NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class Pointer:
    """The batch that was decided last, and the offset of the decision."""

    batch: int = NO_BATCH
    version: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class Decision:
    batch: int
    #: All of one run, since a run decides on what its own tasks have prepared.
    entries: frozenset[Prepared]


def make_decision(batch: int, entries: Iterable[Prepared]) -> Decision:
    decision = Decision(batch, frozenset(entries))
    runs = {entry.task.run for entry in decision.entries}
    check(len(runs) <= 1, f"a decision has transactions of several runs: {sorted(runs)}")
    return decision


def encode_decision(decision: Decision) -> bytes:
    """The run is written once: ids of hundreds of tasks differ in a few characters only."""
    run = next((entry.task.run for entry in decision.entries), "")
    tasks = {entry.task.attempt: str(entry.state) for entry in sorted(decision.entries)}
    value = {"batch": decision.batch, "run": run, "tasks": tasks}
    return json.dumps(value, separators=(",", ":")).encode()


def decode_decision(query: QueryName, value: bytes) -> Decision:
    found = json.loads(value)
    return Decision(
        found["batch"],
        frozenset(
            Prepared(TaskName(query, found["run"], attempt), PreparedTransactionState.parse(state))
            for attempt, state in found["tasks"].items()
        ),
    )
