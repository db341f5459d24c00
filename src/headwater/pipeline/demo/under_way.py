"""The demo's pipelines while they run: three declared ones in one Spark, each with its queries.

They are the built-in files, loaded and compiled as `headwater pipeline run` does it, but in one
process, because a Java virtual machine for each would cost more than all the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.query import StreamingQuery

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.pipeline.builtin.catalogue import builtin_path
from headwater.pipeline.compiled.compiled_pipeline import compile_pipeline
from headwater.pipeline.connector.offset_json import SourceOffsets
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import RunMode
from headwater.pipeline.demo.screen import PipelineState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS: Final = 0.5
_STAND_STILL_SECONDS_MAX: Final = 120.0
#: Before the first batch with data is through.
_NO_WATERMARK: Final = "1970-01-01T00:00:00.000Z"


class PipelineStoppedError(KafkaError):
    """A pipeline ended that should not have."""


def load_builtin(
    name: str, variables: Mapping[str, str], address: str, state: Path
) -> PipelineSpec:
    """A built-in pipeline as its file declares it, with its state in a folder of the demo."""
    return load_pipeline(
        builtin_path(name),
        variables,
        bootstrap_servers=address,
        state_directory=state / name,
    )


class UnderWay:
    """Pipelines that have been started, by name."""

    def __init__(self, queries: Mapping[str, list[StreamingQuery]]) -> None:
        self._queries = dict(queries)

    def states(self, ends: Mapping[TopicPartition, int]) -> list[PipelineState]:
        """How far each is, if topics end where `ends` says; raises if one has failed."""
        self._raise_failure()
        return [
            state_of(name, [last for query in queries if (last := query.lastProgress)], ends)
            for name, queries in self._queries.items()
        ]

    def wait_until_read(
        self, ends: Mapping[TopicPartition, int], show: Callable[[list[PipelineState]], None]
    ) -> None:
        """Return when every query has read up to `ends`."""
        positions, moved_at = None, time.monotonic()
        while True:
            states = self.states(ends)
            show(states)
            reports = [
                query.lastProgress for queries in self._queries.values() for query in queries
            ]
            if all(report is not None and lag_of(report, ends) == 0 for report in reports):
                return
            now = [report and report["batchId"] for report in reports]
            if now != positions:
                positions, moved_at = now, time.monotonic()
            elif time.monotonic() > moved_at + _STAND_STILL_SECONDS_MAX:
                raise PipelineStoppedError("The pipelines do not get on: no batch came to an end.")
            time.sleep(_LOOK_SECONDS)

    def wait_until_ended(
        self, ends: Mapping[TopicPartition, int], show: Callable[[list[PipelineState]], None]
    ) -> None:
        """For pipelines that end by themselves."""
        while any(query.isActive for queries in self._queries.values() for query in queries):
            show(self.states(ends))
            time.sleep(_LOOK_SECONDS)
        show(self.states(ends))

    def finish(self) -> None:
        """Stop every query as soon as it is between two batches."""
        deadline = time.monotonic() + _STAND_STILL_SECONDS_MAX
        for queries in self._queries.values():
            for query in queries:
                while query.status["isTriggerActive"] and time.monotonic() < deadline:
                    time.sleep(_LOOK_SECONDS / 50)
                query.stop()

    def stop(self) -> None:
        """Stop every query in the middle of whatever it does; Java may be gone already."""
        for queries in self._queries.values():
            for query in queries:
                with suppress(Exception):
                    query.stop()

    def _raise_failure(self) -> None:
        for name, queries in self._queries.items():
            for query in queries:
                failure = query.exception()
                if failure is not None:
                    reason = str(failure).partition("\n")[0]
                    raise PipelineStoppedError(f"The pipeline {name} failed: {reason}")


@contextmanager
def started(
    specs: Mapping[str, PipelineSpec], spark: SparkSession, mode: RunMode
) -> Iterator[UnderWay]:
    """All pipelines, until the end of the block."""
    queries: dict[str, list[StreamingQuery]] = {}
    try:
        for name, spec in specs.items():
            begun = compile_pipeline(spec, spark).start(mode)
            # Streams all of them: built-in pipelines over topics have no other queries.
            queries[name] = [query for query in begun if isinstance(query, StreamingQuery)]
        yield UnderWay(queries)
    finally:
        UnderWay(queries).stop()


def state_of(name: str, reports: list[Any], ends: Mapping[TopicPartition, int]) -> PipelineState:
    """A pipeline's queries in one line: the slowest counts, and their work is added up."""
    watermarks = [
        mark
        for report in reports
        if (mark := report.get("eventTime", {}).get("watermark", _NO_WATERMARK)) != _NO_WATERMARK
    ]
    lags = [lag_of(report, ends) for report in reports]
    return PipelineState(
        name,
        batch_count=max((report["batchId"] + 1 for report in reports), default=0),
        record_count=max((_read_count(report) for report in reports), default=0),
        records_per_s=max(
            (report.get("processedRowsPerSecond", 0.0) for report in reports), default=0.0
        ),
        lag=max(lags) if lags else sum(ends.values()),
        watermark=min(watermarks)[11:19] if watermarks else "",
    )


def lag_of(report: Any, ends: Mapping[TopicPartition, int]) -> int:
    """How many records a query had not read when it made its report, of the topics it reads."""
    if any(source.get("endOffset") is None for source in report["sources"]):
        return sum(ends.values())
    lag = 0
    for positions in _positions(report):
        topics = {partition.topic for partition in positions}
        for partition, end in ends.items():
            if partition.topic in topics:
                lag += max(0, end - positions.get(partition, 0))
    return lag


def _read_count(report: Any) -> int:
    return sum(sum(positions.values()) for positions in _positions(report))


def _positions(report: Any) -> Iterator[Mapping[TopicPartition, int]]:
    """Of each of a query's sources: where its next batch begins."""
    for source in report["sources"]:
        end = source.get("endOffset")
        if end is not None:
            yield SourceOffsets.from_json(end).positions
