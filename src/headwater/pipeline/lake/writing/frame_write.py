"""A Spark DataFrame as Parquet files of a table, written by Spark's tasks through Arrow.

Each task writes its rows with `ParquetOutput` and returns what it wrote, so only the files of tasks
that succeeded are known to the driver; what failed or superfluous attempts wrote is never named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.schema_json import normal_schema
from headwater.pipeline.lake.writing.parquet_output import ParquetOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT = "file string"


def frame_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a frame as a table has them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return normal_schema(to_arrow_schema(frame.schema, timezone="UTC"))


def write_frame(
    frame: DataFrame,
    root: str,
    schema: pa.Schema,
    partition_by: Sequence[str],
    *,
    holds_records: bool = False,
    prepare: Callable[[pa.RecordBatch], pa.Table] | None = None,
) -> list[DataFile]:
    """Write all rows; `prepare` is what each task does to a batch first."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        output = ParquetOutput(root, schema, partition_by, holds_records=holds_records)
        for batch in batches:
            output.add(batch if prepare is None else prepare(batch))
        files = [json.dumps(file.to_json()) for file in output.finish()]
        yield pa.record_batch({"file": pa.array(files, pa.string())})

    rows = frame.mapInArrow(write, _RESULT).collect()
    return [DataFile.from_json(json.loads(row.file)) for row in rows]
