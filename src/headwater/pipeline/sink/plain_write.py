"""Writing at least once: a task sends its rows, and is done when the brokers have them all.

A task that is tried again writes its rows again; nothing has to be committed or undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from headwater.client.admin import Admin
from headwater.pipeline.sink.failed_rows import WriteName, failed_rows
from headwater.pipeline.sink.producer_cache import PRODUCERS
from headwater.pipeline.sink.record_sender import RecordSender
from headwater.pipeline.sink.sink_options import SinkSettings
from headwater.pipeline.stages.sink_counts import SinkCounts, TaskCounts

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class RowsWritten(WriterCommitMessage):
    row_count: int
    failed_count: int = 0
    #: None without an audit stage.
    counts: TaskCounts | None = None


def write_rows(
    settings: SinkSettings,
    batches: Iterator[pyarrow.RecordBatch],
    name: Callable[[], WriteName],
) -> RowsWritten:
    """What a task does. Only dead letters and counts tell the name of the write."""
    with ExitStack() as open_clients:
        producer = open_clients.enter_context(PRODUCERS.borrowed(settings.client))
        failed = None
        if settings.tolerance is not None:
            admin = open_clients.enter_context(Admin(settings.admin_settings()))
            failed = failed_rows(settings, settings.tolerance, producer, admin, name())
        counts = SinkCounts() if settings.audit_stage else None
        sender = RecordSender(producer, settings.topic, failed, counts)
        sender.send_all(batches)
        sender.finish()
    told = None if counts is None else counts.of_task(name().query)
    return RowsWritten(sender.row_count, sender.failed_count, told)
