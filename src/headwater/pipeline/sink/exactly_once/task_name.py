"""The names of a write, and of the transactions of its tasks.

A *query* keeps its name over restarts, a *run* is one start of it. Attempts of one batch never
share a transactional id, and neither do runs; the batches of a run use the ids of those before
them, so that a query that runs for months needs no more of them than it has tasks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.client.producer.idempotence.identity import PreparedTransactionState

_PREFIX: Final = "headwater-spark"
_TASK: Final = re.compile(r"(.*)\.([0-9a-f-]{36})\.(\d+\.\d+\.\d+)", re.DOTALL)
#: The same for brokers, without groups.
_TASK_PATTERN: Final = r"\.[0-9a-f-]{36}\.[0-9]+\.[0-9]+\.[0-9]+"


@dataclass(frozen=True, slots=True, order=True)
class QueryName:
    """A query; `text` is the id that Spark gave it, or what names a batch write."""

    text: str

    @property
    def transactional_id(self) -> str:
        """Of the transactions in which drivers decide."""
        return f"{_PREFIX}.{self.text}"

    @property
    def group_id(self) -> str:
        """Under which the place of the last decision is committed."""
        return f"{_PREFIX}.{self.text}"

    @property
    def task_pattern(self) -> str:
        """A regular expression for the transactional ids of all its tasks."""
        return re.escape(self.transactional_id) + _TASK_PATTERN


class TaskName(NamedTuple):
    """One attempt of one task: its run; and partition, slot and attempt with dots between them."""

    query: QueryName
    run: str
    attempt: str

    @property
    def transactional_id(self) -> str:
        return f"{self.query.transactional_id}.{self.run}.{self.attempt}"

    @classmethod
    def parse(cls, transactional_id: str) -> TaskName | None:
        """The inverse of `transactional_id`; None for what is no task's."""
        match = _TASK.fullmatch(transactional_id)
        if match is None or not match[1].startswith(f"{_PREFIX}."):
            return None
        return cls(QueryName(match[1].removeprefix(f"{_PREFIX}.")), match[2], match[3])


class Prepared(NamedTuple):
    """A transaction that is open: whose it is, and which of its transactions."""

    task: TaskName
    state: PreparedTransactionState
