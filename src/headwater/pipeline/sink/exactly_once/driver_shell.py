"""Brings about the effects of a driver: a producer with the query's id, an admin for the rest."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import WriterCommitMessage

from headwater.base.checks import require
from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin import Admin
from headwater.client.producer.producer import Producer
from headwater.pipeline.sink.exactly_once.decision import Decision
from headwater.pipeline.sink.exactly_once.decision_log import DecisionLog
from headwater.pipeline.sink.exactly_once.driver_steps import abort_steps, commit_steps
from headwater.pipeline.sink.exactly_once.effects import (
    Decide,
    DriverEffect,
    End,
    ListOpen,
    ReadEntries,
    ReadPointer,
    TakeQuery,
)
from headwater.pipeline.sink.exactly_once.halt_points import (
    AFTER_DECISION,
    BEFORE_DECISION,
    BETWEEN_ENDS,
    halt_at,
    is_armed,
)
from headwater.pipeline.sink.exactly_once.task_name import Prepared, QueryName, TaskName
from headwater.pipeline.sink.exactly_once.task_shell import TaskDone
from headwater.pipeline.sink.sink_errors import SupersededError
from headwater.pipeline.sink.sink_options import SinkSettings

#: A decision takes milliseconds; one whose driver has died stands in the way for so long at most.
_DECISION_TIMEOUT_MS: Final = 10_000
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class DriverShell:
    """For the commit or abort of one batch."""

    def __init__(self, query: QueryName, batch: int, settings: SinkSettings) -> None:
        self._query = query
        self._batch = batch
        self._settings = settings
        self._admin = Admin(settings.admin_settings())
        self._decisions = DecisionLog(query, self._admin, settings.client)
        self._producer: Producer | None = None
        self._has_decided = False

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._admin.close()

    def run(self, steps: Generator[DriverEffect, Any, None]) -> None:
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration:
                return
            answer = self._do(effect)

    def forget(self) -> None:
        """Nobody will ask for this query again, if there is anything to ask for at all."""
        if self._has_decided:
            self._decisions.forget(self._owned)

    def _do(self, effect: DriverEffect) -> Any:
        match effect:
            case TakeQuery():
                self._take_query()
                return None
            case ReadPointer():
                return self._decisions.read_pointer()
            case ReadEntries(pointer):
                return self._decisions.read_entries(pointer)
            case ListOpen():
                found = self._admin.open_transactions(self._query.task_pattern)
                return frozenset(
                    Prepared(task, state)
                    for task, state in ((TaskName.parse(key), found[key]) for key in found)
                    if task is not None
                )
            case Decide(decision):
                halt_at(BEFORE_DECISION, self._batch)
                self._decide(decision)
                halt_at(AFTER_DECISION, self._batch)
                return None
            case End(prepared, is_commit):
                if is_armed(BETWEEN_ENDS):
                    self._end(prepared[:1], is_commit)
                    halt_at(BETWEEN_ENDS, self._batch)
                self._end(prepared, is_commit)
                return None

    @property
    def _owned(self) -> Producer:
        return require(self._producer, "a driver decides before it has taken the query")

    def _take_query(self) -> None:
        self._producer = Producer(
            self._settings.client,
            transactional_id=self._query.transactional_id,
            transaction_timeout_ms=_DECISION_TIMEOUT_MS,
            linger_ms=0,
        )
        self._producer.init_transactions()

    def _decide(self, decision: Decision) -> None:
        try:
            self._decisions.make(decision, self._owned)
            self._has_decided = True
        except KafkaError as error:
            if error.code not in _FENCED:
                raise
            raise SupersededError(
                f"Batch {self._batch} was not committed: another driver has taken over the query "
                f"{self._query.text}. Only one run may use a checkpoint at a time."
            ) from error

    def _end(self, prepared: Sequence[Prepared], is_commit: bool) -> None:
        decided = {found.task.transactional_id: found.state for found in prepared}
        self._admin.end_transactions(decided, is_commit=is_commit)


def commit_batch(
    batch: int,
    settings: SinkSettings,
    messages: Sequence[WriterCommitMessage | None],
    *,
    is_last: bool = False,
) -> None:
    """Make a batch count, for all readers of committed records.

    After the last one of its query nothing is remembered of it.
    """
    done = _done(messages)
    if not done:
        return
    shell = DriverShell(done[0].query, batch, settings)
    try:
        written = [message.written for message in done if message.written is not None]
        shell.run(commit_steps(batch, done[0].run, written))
        if is_last:
            shell.forget()
    finally:
        shell.close()


def abort_batch(
    batch: int, settings: SinkSettings, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Undo a batch that has failed, unless it failed after it counted.

    If no task got to its end nobody says here whose batch it was: then what died tasks have left
    open is aborted with the next batch.
    """
    done = _done(messages)
    if not done:
        return
    shell = DriverShell(done[0].query, batch, settings)
    try:
        shell.run(abort_steps(batch, done[0].run))
    finally:
        shell.close()


def _done(messages: Sequence[WriterCommitMessage | None]) -> list[TaskDone]:
    return [message for message in messages if isinstance(message, TaskDone)]
