"""Writing at least once: a task sends its rows, and is done when the brokers have them all.

A task that is tried again writes its rows again; nothing has to be committed or undone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from headwater.pipeline.sink.producer_cache import PRODUCERS
from headwater.pipeline.sink.record_sender import RecordSender
from headwater.pipeline.sink.sink_options import SinkSettings

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class RowsWritten(WriterCommitMessage):
    row_count: int


def write_rows(settings: SinkSettings, batches: Iterator[pyarrow.RecordBatch]) -> RowsWritten:
    """What a task does."""
    with PRODUCERS.borrowed(settings.client) as producer:
        sender = RecordSender(producer, settings.topic)
        sender.send_all(batches)
        sender.finish()
    return RowsWritten(sender.row_count)
