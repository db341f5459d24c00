"""A query for each sink: of its rows as a stream with its own checkpoint, or of one batch.

What a sink promises across crashes: lake tables and archives take each batch once; a topic takes
each row at least once, or once with `exactly_once`; a screen may show a batch again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.pipeline.compiled.batch_query import BatchMarker, BatchQuery
from headwater.pipeline.compiled.coding.topic_encoding import topic_rows
from headwater.pipeline.compiled.connector_options import sink_write_options
from headwater.pipeline.compiled.observed_rows import count_written
from headwater.pipeline.compiled.patient_start import start_patiently
from headwater.pipeline.compiled.row_counts import WrittenRows
from headwater.pipeline.compiled.sinks.screen import batch_text
from headwater.pipeline.compiled.sinks.table_sink import (
    streaming_writer,
    write_archive,
    write_lake,
    write_table,
)
from headwater.pipeline.compiled.spark_failures import cause_of
from headwater.pipeline.compiled.topic_source import FORMAT
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill, Once, RunMode
from headwater.pipeline.declared.specs.sink import SinkSpec


class SinkQueries:
    """Starts the queries of one run."""

    def __init__(
        self,
        spec: PipelineSpec,
        spark: SparkSession,
        mode: RunMode,
        say: Callable[[str], None],
        written: WrittenRows,
    ) -> None:
        self._spec = spec
        self._spark = spark
        self._mode = mode
        self._say = say
        self._written = written

    def start(
        self, sink: SinkSpec, frame: DataFrame, sources: Mapping[str, Observation]
    ) -> StreamingQuery | BatchQuery:
        """The query of a sink, over the rows of its input, which are of these sources."""
        if frame.isStreaming:
            return self._stream(sink, frame)
        return self._batch(
            sink.name, lambda identity: self._write_batch(sink, frame, identity), sources
        )

    def start_to_topic(
        self,
        name: str,
        frame: DataFrame,
        options: Mapping[str, str],
        trigger_ms: int,
        sources: Mapping[str, Observation],
    ) -> StreamingQuery | BatchQuery:
        """A query of rows that are records already."""
        if frame.isStreaming:
            return self._stream_to_topic(name, frame, options, trigger_ms)
        return self._batch(name, lambda identity: _write_topic(frame, options, identity), sources)

    # -- streams ---------------------------------------------------------------------------------

    def _stream(self, sink: SinkSpec, frame: DataFrame) -> StreamingQuery:
        # Spark lets a sink written in Python only append; other modes go batch by batch.
        if sink.kind == "topic" and sink.mode == "append":
            rows = topic_rows(frame, sink)
            options = sink_write_options(self._spec, sink)
            return self._stream_to_topic(sink.name, rows, options, sink.trigger_ms)
        checkpoint = self._spec.checkpoint_location(sink.name, self._mode)

        def write(batch: DataFrame, batch_id: int) -> None:
            # Spark looks for its own errors in the text of ours, by a pattern that overflows the
            # stack of the query's thread where the text is long.
            try:
                row_count = write_plainly(batch, batch_id)
                self._written.add(streaming_writer(batch), batch_id, row_count)
            except Exception as error:
                raise RuntimeError(cause_of(error)) from None

        def write_plainly(batch: DataFrame, batch_id: int) -> int:
            if sink.kind == "topic":
                options = sink_write_options(self._spec, sink)
                identity = f"{streaming_writer(batch)}.{batch_id}"
                return _write_topic(topic_rows(batch, sink), options, identity)
            if sink.kind == "screen":
                return self._show(f"{sink.name}, batch {batch_id}", sink, batch)
            if sink.kind == "archive":
                return write_archive(sink, batch, batch_id, checkpoint)
            if sink.kind == "lake":
                return write_lake(sink, batch, batch_id, streaming_writer(batch))
            return write_table(sink, batch, batch_id, streaming_writer(batch))

        writer = frame.writeStream.outputMode(sink.mode).foreachBatch(write)
        return self._started(writer, sink.name, sink.trigger_ms)

    def _stream_to_topic(
        self, name: str, rows: DataFrame, options: Mapping[str, str], trigger_ms: int
    ) -> StreamingQuery:
        writer = rows.writeStream.format(FORMAT).options(**options).outputMode("append")
        return self._started(writer, name, trigger_ms)

    def _started(self, writer: DataStreamWriter, name: str, trigger_ms: int) -> StreamingQuery:
        taken = {query.name for query in self._spark.streams.active}
        shown = name if name not in taken else f"{self._spec.name}.{name}"
        named = writer.queryName(shown).option(
            "checkpointLocation", self._spec.checkpoint_location(name, self._mode)
        )
        if isinstance(self._mode, Once):
            named = named.trigger(availableNow=True)
        else:
            named = named.trigger(processingTime=f"{trigger_ms} milliseconds")
        return start_patiently(named.start)

    # -- batches ---------------------------------------------------------------------------------

    def _batch(
        self, name: str, work: Callable[[str], int], sources: Mapping[str, Observation]
    ) -> BatchQuery:
        folder = None
        if isinstance(self._mode, Backfill):
            folder = self._spec.state_directory / self._mode.folder / "batches" / name
        return BatchQuery(name, self._spark, work, BatchMarker(folder), sources)

    def _write_batch(self, sink: SinkSpec, frame: DataFrame, identity: str) -> int:
        match sink.kind:
            case "topic":
                options = sink_write_options(self._spec, sink)
                return _write_topic(topic_rows(frame, sink), options, identity)
            case "lake":
                return write_lake(sink, frame, 0, identity)
            case "screen":
                return self._show(sink.name, sink, frame)
            case _:
                return write_table(sink, frame, 0, identity)

    def _show(self, title: str, sink: SinkSpec, frame: DataFrame) -> int:
        text, row_count = batch_text(title, frame, sink.rows)
        if text:
            self._say(text)
        return row_count


def _write_topic(rows: DataFrame, options: Mapping[str, str], identity: str) -> int:
    if options.get("headwater.exactlyOnce") == "true":
        options = {"headwater.writeId": identity, **options}

    def write(frame: DataFrame) -> None:
        frame.write.format(FORMAT).options(**options).mode("append").save()

    return count_written(rows, write)
