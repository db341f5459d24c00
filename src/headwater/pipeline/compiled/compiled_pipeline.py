"""A declared pipeline made ready for Spark: compile it, then start it in one mode or another.

    pipeline = compile_pipeline(load_pipeline(path, variables), spark)
    queries = pipeline.start(Once())
    for query in queries:
        query.awaitTermination()

All frames are made, and all that can be refused is refused, before the first query starts; if one
then cannot start, those that did are stopped. A run that goes on from checkpoints gives the
same tables as one that was never broken off. Neither owns the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.pipeline.compiled.batch_query import BatchQuery
from headwater.pipeline.compiled.compile_error import told_as
from headwater.pipeline.compiled.connector_options import write_options
from headwater.pipeline.compiled.row_counts import WrittenRows
from headwater.pipeline.compiled.sinks.dead_letters import dead_letters, query_name
from headwater.pipeline.compiled.sinks.queries import SinkQueries
from headwater.pipeline.compiled.sinks.table_formats import check_class_path
from headwater.pipeline.compiled.step_frames import StepFrames, needed_names
from headwater.pipeline.compiled.topic_source import TopicSource
from headwater.pipeline.declared.backfill_rules import check_backfill
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill, RunMode
from headwater.pipeline.declared.specs.source import SourceSpec

Query = StreamingQuery | BatchQuery


def compile_pipeline(
    spec: PipelineSpec, spark: SparkSession, say: Callable[[str], None] = print
) -> CompiledPipeline:
    """Make a pipeline ready; `say` gets what its screens show."""
    check_class_path(spec, spark)
    return CompiledPipeline(spec, spark, say)


class CompiledPipeline:
    """May be started again when the queries of the start before have ended."""

    def __init__(self, spec: PipelineSpec, spark: SparkSession, say: Callable[[str], None]) -> None:
        self.spec = spec
        self._spark = spark
        self._say = say
        #: What Spark does not count of the batches that sinks write.
        self.written = WrittenRows()

    def start(
        self, mode: RunMode, on_start: Callable[[str], None] = lambda name: None
    ) -> list[Query]:
        """One query for each sink, and one for the dead letters of each source that has a topic.

        A backfill, and rows that no stream feeds, are written as batches. `on_start` is told the
        name of each query that has started.
        """
        if isinstance(mode, Backfill):
            check_backfill(self.spec)
        frames = StepFrames(self.spec, self._spark, mode)
        rows = frames.build()
        letters = [self._letters(frames, each, mode) for each in self._with_letters()]
        queries = SinkQueries(self.spec, self._spark, mode, self._say, self.written)
        started: list[Query] = []
        try:
            for reader, frame in letters:
                started.append(self._start_letters(queries, reader, frame))
                on_start(query_name(reader.source))
            for sink in self.spec.sinks:
                with told_as(self.spec, f"sink '{sink.name}'", sink.line):
                    sources = frames.observations(sink.input)
                    started.append(queries.start(sink, rows[sink.input], sources))
                on_start(sink.name)
        except BaseException:
            _stop(started)
            raise
        return started

    def _with_letters(self) -> list[SourceSpec]:
        needed = needed_names(self.spec)
        return [each for each in self.spec.sources if each.has_dead_letters and each.name in needed]

    def _letters(
        self, frames: StepFrames, source: SourceSpec, mode: RunMode
    ) -> tuple[TopicSource, DataFrame]:
        with told_as(self.spec, f"source '{source.name}'", source.line):
            # Streamed even where the source itself is read whole by every run, so that a bad record
            # is set aside once and not once a run.
            streaming = not isinstance(mode, Backfill)
            reader = frames.topic_source(source, streaming=streaming)
            return reader, dead_letters(self.spec, reader)

    def _start_letters(self, queries: SinkQueries, reader: TopicSource, frame: DataFrame) -> Query:
        source = reader.source
        exactly_once = any(sink.exactly_once for sink in self.spec.sinks)
        topic = self.spec.dead_letter_topic(source)
        options = write_options(self.spec, topic, {}, exactly_once=exactly_once)
        trigger_ms = min(sink.trigger_ms for sink in self.spec.sinks)
        with told_as(self.spec, f"dead letters of source '{source.name}'", source.line):
            return queries.start_to_topic(
                query_name(source), frame, options, trigger_ms, reader.observations
            )


def _stop(queries: Sequence[Query]) -> None:
    for query in queries:
        query.stop()
