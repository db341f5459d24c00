"""The writer of `df.writeStream.format("headwater")`: made anew for every micro-batch.

Spark tells it nothing of its query. A task finds that out from properties that Spark hands to all
tasks of a query, and the driver from what the tasks answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headwater.base.checks import check
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.sink.exactly_once.driver_shell import abort_batch, commit_batch
from headwater.pipeline.sink.exactly_once.task_name import QueryName
from headwater.pipeline.sink.exactly_once.task_shell import TaskPlace, write_task
from headwater.pipeline.sink.failed_rows import report_failed
from headwater.pipeline.sink.plain_write import write_rows
from headwater.pipeline.sink.sink_options import parse_sink_settings
from headwater.pipeline.sink.sink_rows import check_schema
from headwater.pipeline.spark.prompt_task import PromptTask
from headwater.pipeline.stages.sink_counts import publish_batch

if TYPE_CHECKING:
    import pyarrow

#: Kept in the checkpoint, and so the same after every restart.
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
#: Spark makes the id of the run the group of all its jobs.
_RUN_ID: Final = "spark.jobGroup.id"


class HeadwaterStreamWriter(PromptTask, DataSourceStreamArrowWriter):
    """Made on the driver, and pickled for the tasks and for the commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = parse_sink_settings(options, Mode.STREAM)
        check_schema(schema, self._settings.topic)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        if not self._settings.is_exactly_once:
            return write_rows(self._settings, iterator, lambda: _place().write_name)
        return write_task(_place(), self._settings, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        # Before the decision: if the batch is run again, it counts again, unless it was decided.
        publish_batch(self._settings, batchId, messages)
        if self._settings.is_exactly_once:
            commit_batch(batchId, self._settings, messages)
        report_failed(self._settings, batchId, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        if self._settings.is_exactly_once:
            abort_batch(batchId, self._settings, messages)


def _place() -> TaskPlace:
    """Who this task is, as Spark says."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("Rows are written outside of a task.")
    properties = {name: context.getLocalProperty(name) for name in (_QUERY_ID, _RUN_ID, _BATCH_ID)}
    missing = [name for name, value in properties.items() if value is None]
    check(not missing, f"Spark has not told a task its {', '.join(missing)}")
    return TaskPlace(
        QueryName(str(properties[_QUERY_ID])),
        str(properties[_RUN_ID]),
        int(str(properties[_BATCH_ID])),
        context.partitionId(),
        context.attemptNumber(),
    )
