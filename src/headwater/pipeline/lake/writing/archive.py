"""Archives records of topics in a lake, by topic and date, so that a gap can be proven absent.

Every batch of the query that reads the topics becomes one commit: its records, and for each topic
partition the range of offsets that the query's checkpoint gives the batch. Offsets that are in the
table already are refused, whoever brings them; records outside the batch's ranges too. `verify`
then shows that ranges have no gaps and that every record is in its range, once.

    topic, partition, offset, timestamp, timestampType, key, value, headers, date

The date is that of the record's timestamp in UTC.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from headwater.pipeline.lake.checkpoint import batch_ends, batch_ranges, checkpoint_writer
from headwater.pipeline.lake.errors import LakeError, LakeSchemaError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.change import Change, is_committed
from headwater.pipeline.lake.upkeep.compaction import maintain
from headwater.pipeline.lake.upkeep.compaction_plan import CompactionOptions
from headwater.pipeline.lake.upkeep.vacuum import DAY_S
from headwater.pipeline.lake.writing.frame_write import frame_schema, write_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DATE: Final = "date"
TIMESTAMP: Final = "timestamp"
PARTITION_BY: Final = ("topic", DATE)
_NEEDED: Final = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
}
_OPTIONAL: Final = ("timestampType", "key", "value", "headers")


def archive_batch(
    table: LakeTable | str | os.PathLike[str],
    frame: DataFrame,
    batch_id: int,
    *,
    checkpoint: str | os.PathLike[str],
    writer: str | None = None,
    compact_from_files: int = 32,
    vacuum_after_s: float = DAY_S,
    tell_rows: Callable[[int], None] | None = None,
) -> bool:
    """Add a batch of records, as the connector's source gives them; False if it is there already.

    Called from `foreachBatch` of a query that has this checkpoint and one source. `tell_rows` is
    told how many records were written, if the batch was not there.
    """
    lake = table if isinstance(table, LakeTable) else LakeTable(table)
    writer = writer or checkpoint_writer(checkpoint, "archive")
    if is_committed(lake.newest(), writer, batch_id):
        return False
    after = batch_ends(checkpoint, batch_id)
    if after is None:
        raise LakeError(
            f"The checkpoint {os.fspath(checkpoint)} has no offsets of batch {batch_id}."
        )
    before = batch_ends(checkpoint, batch_id - 1) if batch_id else None
    schema = archive_schema(frame_schema(frame))
    files = write_frame(
        frame.select(*(name for name in schema.names if name != DATE)),
        lake.path,
        schema,
        PARTITION_BY,
        holds_records=True,
        prepare=dated,
    )
    try:
        ranges = batch_ranges(before, after, files)
        committed = True
        if ranges or not lake.exists():
            committed = lake.commit(
                Change(
                    "archive",
                    tuple(files),
                    schema=schema,
                    partition_by=PARTITION_BY,
                    writer=writer,
                    batch_id=batch_id,
                    ranges=ranges,
                )
            )
    except LakeError:
        lake.remove_files(files)
        raise
    if not committed:
        lake.remove_files(files)
    elif tell_rows is not None:
        tell_rows(sum(file.row_count for file in files))
    maintain(lake, CompactionOptions(compact_from_files), vacuum_after_s)
    return committed


def archive_schema(source: pa.Schema) -> pa.Schema:
    """The columns of an archive for the columns of a source, which must be the connector's."""
    for name, kind in _NEEDED.items():
        if name not in source.names or source.field(name).type != kind:
            raise LakeSchemaError(
                f"An archive takes records as the connector reads them, with a column {name!r}; "
                f"there are {', '.join(map(repr, source.names))}."
            )
    names = [*_NEEDED, *(name for name in _OPTIONAL if name in source.names)]
    return pa.schema([*(source.field(name) for name in names), pa.field(DATE, pa.date32())])


def dated(records: pa.RecordBatch) -> pa.Table:
    """Records with the date of their timestamp, in UTC."""
    table = pa.Table.from_batches([records])
    times = table.column(TIMESTAMP).cast(pa.timestamp("us", "UTC"))
    return table.append_column(pa.field(DATE, pa.date32()), times.cast(pa.date32()))
