"""`spark.readStream.format("headwater")`: plans one micro-batch after the other.

Lives in one process on the driver for as long as the query runs, but for `read`, which runs in
tasks. Spark stores the offsets that `latestOffset` returns before anything is read, and plans from
them again after a crash, so ranges depend on nothing but them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.cluster_offsets import ClusterOffsets
from headwater.pipeline.connector.data_loss import (
    DataLossReport,
    gone_partitions,
    late_new_partitions,
    moved_back,
)
from headwater.pipeline.connector.offset_json import SourceOffsets
from headwater.pipeline.connector.offset_ranges import ranges_between, split_ranges
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.connector.position_lookup import PositionLookup
from headwater.pipeline.connector.range_reader import RangePartition, read_range
from headwater.pipeline.connector.read_limit import BatchGate, limited_ends, new_offset_count
from headwater.pipeline.connector.record_schema import check_schema
from headwater.pipeline.connector.source_settings import parse_source_settings
from headwater.pipeline.spark.prompt_task import PromptTask

if TYPE_CHECKING:
    import pyarrow


class HeadwaterStreamReader(PromptTask, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One for each source of a query. Nothing is connected before it is needed."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        check_schema(schema)
        settings = self._settings = parse_source_settings(options, Mode.STREAM)
        self._schema = schema
        self._cluster = ClusterOffsets(settings)
        self._loss = DataLossReport(is_fatal=settings.fails_on_data_loss)
        self._gate = BatchGate(settings.offsets_min, settings.trigger_delay_ms)
        #: Where a query that ends with what is there ends; None for one that goes on.
        self._final: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        #: Where a new query begins; None for one that goes on.
        self._initial: dict[TopicPartition, int] | None = None

    # -- offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        settings = self._settings
        starts = PositionLookup(self._cluster, self._loss).starts(
            settings.start,
            self._cluster.partitions(are_needed=True),
            group=settings.group,
            is_missing_time_latest=settings.is_missing_time_latest,
        )
        self._initial = starts
        return self._json(starts)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._settings.offsets_max is not None:
            return ReadMaxRows(self._settings.offsets_max)
        if self._settings.offsets_min is not None:
            return ReadMinRows(self._settings.offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._final = self._cluster.existing()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        starts = SourceOffsets.from_json(start).positions
        ends = self._reachable(starts)
        for sentence in (gone_partitions(starts, ends), moved_back(starts, ends)):
            if sentence is not None:
                self._loss.tell(sentence)
        self._latest = ends
        if not isinstance(limit, ReadAllAvailable):
            begins = starts | self._new(starts, ends)
            count = new_offset_count(begins, ends)
            # A query that ends with what is there must not wait for more.
            if self._final is None and not self._gate.is_open(count, _now_ms()):
                return start
            if isinstance(limit, ReadMaxRows):
                ends = limited_ends(begins, ends, limit.max_rows)
        if ends == starts:
            # The same text, from which Spark sees that there is nothing new.
            return start
        return self._json(ends, starts if starts == self._initial else None)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else self._json(self._latest)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: this comes late and never for the last batch; `report_lag` commits progress."""

    def stop(self) -> None:
        self._cluster.close()

    # -- reading ---------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        until = SourceOffsets.from_json(end)
        ends = until.positions
        # After a crash in the first batch `start` is where a query would begin that began now.
        starts = SourceOffsets.from_json(start).positions if until.first is None else until.first
        new = self._new(starts, ends)
        if (sentence := late_new_partitions(new)) is not None:
            self._loss.tell(sentence)
        ranges = split_ranges(
            ranges_between(starts | new, ends),
            task_count_min=self._settings.task_count_min,
            task_offsets_max=self._settings.task_offsets_max,
        )
        return [RangePartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_range(partition, self._settings, self._schema)

    # -- what there is ---------------------------------------------------------------------------

    def _reachable(self, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """How far everything can be read now, or when a query began that ends with that.

        What the query has read already is there, even if it appeared after that moment, or is in a
        transaction that is still open: only what is really gone ends before where it was read to.
        """
        ends = self._cluster.existing() if self._final is None else self._final
        behind = [each for each, start in starts.items() if ends.get(each, -1) < start]
        if behind:
            there = self._cluster.existing(is_readable=False)
            ends = ends | {
                each: starts[each] for each in behind if there.get(each, -1) >= starts[each]
            }
        return ends

    def _new(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Where partitions begin that have appeared since."""
        return self._cluster.earliest([each for each in ends if each not in starts])

    def _json(
        self,
        positions: Mapping[TopicPartition, int],
        first: Mapping[TopicPartition, int] | None = None,
    ) -> dict[str, Any]:
        settings = self._settings
        return SourceOffsets(
            dict(positions),
            settings.bootstrap_servers,
            settings.group,
            None if first is None else dict(first),
        ).to_json()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
