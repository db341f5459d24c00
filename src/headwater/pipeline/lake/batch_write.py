"""Writes a Spark batch to a lake table, once however often it is tried: for `foreachBatch`.

    def write(frame: DataFrame, batch_id: int) -> None:
        write_batch(table, frame, writer=checkpoint_writer(checkpoint, "totals"),
                    batch_id=batch_id, mode="upsert", keys=["customer"])

A batch that was committed before is recognised by writer and number, and not even computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headwater.pipeline.lake.errors import LakeError, LakeSchemaError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.change import is_committed
from headwater.pipeline.lake.upkeep.compaction import maintain
from headwater.pipeline.lake.upkeep.compaction_plan import CompactionOptions
from headwater.pipeline.lake.upkeep.vacuum import DAY_S
from headwater.pipeline.lake.writing.batch_commit import WrittenBatch, commit_batch, write_mode
from headwater.pipeline.lake.writing.frame_write import frame_schema, write_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANK = "headwater_rank"


def write_batch(
    table: LakeTable | str | os.PathLike[str],
    frame: DataFrame,
    *,
    writer: str,
    batch_id: int,
    mode: str = "append",
    keys: Sequence[str] = (),
    latest_by: str | None = None,
    partition_by: Sequence[str] = (),
    compact_from_files: int = 32,
    vacuum_after_s: float = DAY_S,
    tell_rows: Callable[[int], None] | None = None,
) -> bool:
    """Append the rows, merge them by `keys`, or put them in place of all others.

    Where several rows of a batch may have a key, the one with the greatest `latest_by` stays.
    Returns False if the batch was there already. When a directory has `compact_from_files` small
    files they are made one (0: never), and what was replaced is removed after `vacuum_after_s`.
    `tell_rows` is told how many rows were written, if the batch was not there.
    """
    lake = table if isinstance(table, LakeTable) else LakeTable(table)
    if not writer or batch_id < 0:
        raise LakeError("A batch needs a writer's name, and a number from 0 on.")
    written_as = write_mode(mode, keys)
    if is_committed(lake.newest(), writer, batch_id):
        return False
    if latest_by is not None and written_as == "upsert":
        frame = _latest(frame, keys, latest_by)
    schema = frame_schema(frame)
    for name in partition_by:
        if name not in schema.names:
            raise LakeSchemaError(
                f"There is no column {name!r} to partition by; there are "
                f"{', '.join(map(repr, schema.names))}."
            )
    files = write_frame(frame, lake.path, schema, tuple(partition_by))
    batch = WrittenBatch(
        tuple(files), schema, written_as, tuple(keys), tuple(partition_by), writer, batch_id
    )
    committed = commit_batch(lake, batch)
    if committed and tell_rows is not None:
        tell_rows(sum(file.row_count for file in files))
    maintain(lake, CompactionOptions(compact_from_files), vacuum_after_s)
    return committed


def _latest(frame: DataFrame, keys: Sequence[str], latest_by: str) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy(*(f"`{key}`" for key in keys)).orderBy(
        F.col(f"`{latest_by}`").desc_nulls_last()
    )
    ranked = frame.withColumn(_RANK, F.row_number().over(order))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK)
