"""Brings about the effects of a task: a producer with the task's id, and an admin to look with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import WriterCommitMessage

from headwater.base.checks import require
from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin import Admin
from headwater.client.producer.producer import Producer
from headwater.pipeline.sink.exactly_once.decision_log import DecisionLog
from headwater.pipeline.sink.exactly_once.effects import (
    AbortOwn,
    ReadPointer,
    SkipRows,
    TakeOver,
    TaskEffect,
    WriteRows,
)
from headwater.pipeline.sink.exactly_once.halt_points import AFTER_WRITE, halt_at
from headwater.pipeline.sink.exactly_once.task_name import Prepared, QueryName, TaskName
from headwater.pipeline.sink.exactly_once.task_steps import Written, task_steps
from headwater.pipeline.sink.failed_rows import WriteName, failed_rows
from headwater.pipeline.sink.record_sender import RecordSender
from headwater.pipeline.sink.sink_errors import NoTwoPhaseCommitError
from headwater.pipeline.sink.sink_options import SinkSettings
from headwater.pipeline.stages.sink_counts import SinkCounts, TaskCounts

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class TaskPlace:
    """Which attempt of which task of which batch this is."""

    query: QueryName
    run: str
    batch: int
    partition: int
    attempt: int

    @property
    def write_name(self) -> WriteName:
        return WriteName(self.query.text, self.batch)

    def name(self, slot: int) -> TaskName:
        return TaskName(self.query, self.run, f"{self.partition}.{slot}.{self.attempt}")


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """What the driver hears; it does not know by itself whose batch it commits."""

    query: QueryName
    run: str
    #: None if there were no rows, or if the batch had been decided before.
    written: Written | None
    row_count: int
    failed_count: int = 0
    #: None without an audit stage, or if the batch had been decided before.
    counts: TaskCounts | None = None


class TaskShell:
    def __init__(
        self, place: TaskPlace, settings: SinkSettings, rows: Iterator[pyarrow.RecordBatch]
    ) -> None:
        self._place = place
        self._settings = settings
        self._rows = rows
        self._admin = Admin(settings.admin_settings())
        self._decisions = DecisionLog(place.query, self._admin, settings.client)
        self._name = place.name(0)
        self._producer: Producer | None = None
        self.row_count = 0
        self.failed_count = 0
        self.counts: TaskCounts | None = None

    def close(self) -> None:
        """A transaction that is not completely written is aborted by this; one that is, stays."""
        if self._producer is not None:
            self._producer.close()
        self._admin.close()

    def do(self, effect: TaskEffect) -> Any:
        match effect:
            case ReadPointer():
                return self._decisions.read_pointer()
            case SkipRows():
                for _ in self._rows:
                    pass
                return None
            case TakeOver(slot):
                return self._take_over(self._place.name(slot))
            case WriteRows():
                return self._write()
            case AbortOwn():
                self._owned.abort_transaction()
                return None

    @property
    def _owned(self) -> Producer:
        return require(self._producer, "a task writes before it has an id")

    def _take_over(self, name: TaskName) -> bool:
        if self._producer is not None:
            self._producer.close()
        self._name = name
        self._producer = Producer(
            self._settings.client,
            transactional_id=name.transactional_id,
            transaction_two_phase_commit_enable=True,
        )
        try:
            self._producer.init_transactions(keep_prepared=True)
        except KafkaError as error:
            raise _without_two_phases(error) from error
        return not self._producer.prepared_transaction.exists

    def _write(self) -> Prepared:
        producer = self._owned
        producer.begin_transaction()
        failed = None
        if self._settings.tolerance is not None:
            # Of the same transaction: a letter counts if the rows beside it do.
            failed = failed_rows(
                self._settings,
                self._settings.tolerance,
                producer,
                self._admin,
                self._place.write_name,
            )
        counts = SinkCounts() if self._settings.audit_stage else None
        sender = RecordSender(producer, self._settings.topic, failed, counts)
        sender.send_all(self._rows)
        sender.finish()
        self.row_count, self.failed_count = sender.row_count, sender.failed_count
        if counts is not None:
            self.counts = counts.of_task(self._place.query.text)
        state = producer.prepare_transaction()
        halt_at(AFTER_WRITE, self._place.batch)
        return Prepared(self._name, state)


def write_task(
    place: TaskPlace, settings: SinkSettings, batches: Iterator[pyarrow.RecordBatch]
) -> TaskDone:
    """All of a task. One without rows has nothing to do with transactions."""
    some = (batch for batch in batches if len(batch))
    first = next(some, None)
    if first is None:
        return TaskDone(place.query, place.run, None, 0)
    shell = TaskShell(place, settings, itertools.chain([first], some))
    try:
        written = _drive(shell, place.batch)
    finally:
        shell.close()
    return TaskDone(
        place.query, place.run, written, shell.row_count, shell.failed_count, shell.counts
    )


def _drive(shell: TaskShell, batch: int) -> Written | None:
    steps = task_steps(batch)
    answer: Any = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        answer = shell.do(effect)


def _without_two_phases(error: KafkaError) -> KafkaError:
    """A sentence for those who cannot know what a two-phase commit has to do with it."""
    if error.code not in (
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ):
        return error
    return NoTwoPhaseCommitError(
        "Exactly once needs brokers that let a transaction wait for Spark's decision: set "
        "transaction.two.phase.commit.enable=true on them, which is Headwater's default (Apache "
        f"Kafka 4.4 cannot do it), or leave out 'headwater.exactlyOnce'. ({error})"
    )
