"""The writer of `df.write.format("headwater")`: one job, whose tasks write their rows once each.

With exactly once, the job is batch 0 of a query of its own: that of `headwater.writeId`, so that a
write of the same name is recognised, or one that nobody will ask for again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.sink.exactly_once.driver_shell import abort_batch, commit_batch
from headwater.pipeline.sink.exactly_once.task_name import QueryName
from headwater.pipeline.sink.exactly_once.task_shell import TaskPlace, write_task
from headwater.pipeline.sink.failed_rows import WriteName, report_failed
from headwater.pipeline.sink.plain_write import write_rows
from headwater.pipeline.sink.sink_options import parse_sink_settings
from headwater.pipeline.sink.sink_rows import check_schema
from headwater.pipeline.spark.prompt_task import PromptTask
from headwater.pipeline.stages.sink_counts import publish_batch

if TYPE_CHECKING:
    import pyarrow

_BATCH: Final = 0


class HeadwaterBatchWriter(PromptTask, DataSourceArrowWriter):
    """Made on the driver, and pickled for the tasks and for the commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = parse_sink_settings(options, Mode.BATCH)
        check_schema(schema, self._settings.topic)
        self._run = str(uuid.uuid4())
        # So that it is not taken for the id that Spark gives to a streaming query.
        self._query = QueryName(f"write.{self._settings.write_id or self._run}")

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        if not self._settings.is_exactly_once:
            return write_rows(self._settings, iterator, lambda: WriteName(self._query.text, _BATCH))
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("Rows are written outside of a task.")
        partition, attempt = context.partitionId(), context.attemptNumber()
        place = TaskPlace(self._query, self._run, _BATCH, partition, attempt)
        return write_task(place, self._settings, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        publish_batch(self._settings, _BATCH, messages)
        if self._settings.is_exactly_once:
            is_last = not self._settings.write_id
            commit_batch(_BATCH, self._settings, messages, is_last=is_last)
        report_failed(self._settings, _BATCH, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._settings.is_exactly_once:
            abort_batch(_BATCH, self._settings, messages)
