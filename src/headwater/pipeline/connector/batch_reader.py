"""`spark.read.format("headwater")`: reads what lies between two positions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headwater.pipeline.connector.cluster_offsets import ClusterOffsets
from headwater.pipeline.connector.data_loss import DataLossReport
from headwater.pipeline.connector.offset_ranges import ranges_between, split_ranges
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.connector.position_lookup import PositionLookup
from headwater.pipeline.connector.range_reader import RangePartition, read_range
from headwater.pipeline.connector.record_schema import check_schema
from headwater.pipeline.connector.source_settings import parse_source_settings
from headwater.pipeline.spark.prompt_task import PromptTask

if TYPE_CHECKING:
    import pyarrow


class HeadwaterBatchReader(PromptTask, DataSourceReader):
    """Planned on the driver; `read` alone runs in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        check_schema(schema)
        self._settings = parse_source_settings(options, Mode.BATCH)
        self._schema = schema
        #: Frames that are read twice are counted twice.
        self._run = f"read.{uuid.uuid4()}"

    def partitions(self) -> list[InputPartition]:
        settings = self._settings
        cluster = ClusterOffsets(settings)
        try:
            lookup = PositionLookup(cluster, DataLossReport(is_fatal=settings.fails_on_data_loss))
            partitions = cluster.partitions(are_needed=True)
            # The ends come first: a record that arrives meanwhile is not half seen.
            ends = lookup.ends(settings.end, partitions)
            starts = lookup.starts(
                settings.start,
                partitions,
                group=settings.group,
                is_missing_time_latest=settings.is_missing_time_latest,
            )
        finally:
            cluster.close()
        ranges = split_ranges(
            ranges_between(starts, ends),
            task_count_min=settings.task_count_min,
            task_offsets_max=settings.task_offsets_max,
        )
        return [RangePartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_range(partition, self._settings, self._schema, lambda: self._run)
