"""Batches into tables: lake tables and archives by their own commits, Delta and Iceberg by theirs.

A lake table takes each batch of a writer once, whatever crashed in between. The writer is the query
by the identity that its checkpoint holds: a checkpoint that was thrown away is another writer, so
its batches, which are numbered from 0 again, are not taken for those of the old one.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from headwater.base.checks import check
from headwater.pipeline.compiled.observed_rows import count_written
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.lake.batch_write import write_batch
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.writing.archive import archive_batch

_QUERY_ID: Final = "sql.streaming.queryId"
WriteMode: TypeAlias = Literal["append", "upsert", "overwrite"]


def write_mode(sink: SinkSpec) -> WriteMode:
    """What a batch does to the table: rows are added, replaced by key, or are the whole of it."""
    if sink.upsert:
        return "upsert"
    return "overwrite" if sink.mode == "complete" else "append"


def streaming_writer(frame: DataFrame) -> str:
    """The identity of the query whose batch this is, asked for inside of `foreachBatch`."""
    identity: str | None = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    check(bool(identity), "a batch of a streaming query knows its query")
    return str(identity)


def write_lake(sink: SinkSpec, frame: DataFrame, batch_id: int, writer: str) -> int:
    """One batch into a lake table; how many rows were written, none if they were there already."""
    told: list[int] = []
    write_batch(
        LakeTable(sink.lake),
        frame,
        writer=writer,
        batch_id=batch_id,
        mode=write_mode(sink),
        keys=sink.upsert,
        latest_by=sink.latest_by or None,
        partition_by=sink.partition_by,
        tell_rows=told.append,
    )
    return sum(told)


def write_archive(sink: SinkSpec, frame: DataFrame, batch_id: int, checkpoint: str) -> int:
    """One batch of whole records into an archive, with their ranges of offsets; how many."""
    told: list[int] = []
    table = LakeTable(sink.archive)
    archive_batch(table, frame, batch_id, checkpoint=checkpoint, tell_rows=told.append)
    return sum(told)


def write_table(sink: SinkSpec, frame: DataFrame, batch_id: int, writer: str) -> int:
    """One batch into a Delta or Iceberg table; how many rows were written.

    Delta recognises a repeated batch by writer and number; an upsert may be repeated anyway.
    """
    mode = write_mode(sink)
    if mode == "upsert" and _exists(sink, frame):
        return _merge(sink, _newest(sink, frame))
    return count_written(frame, lambda rows: _write(sink, rows, mode, batch_id, writer))


def _write(sink: SinkSpec, frame: DataFrame, mode: WriteMode, batch_id: int, writer: str) -> None:
    if sink.iceberg:
        writing = frame.writeTo(sink.iceberg)
        if not _exists(sink, frame):
            if sink.partition_by:
                writing = writing.partitionedBy(*map(f.col, sink.partition_by))
            writing.using("iceberg").create()
        elif mode == "overwrite":
            writing.overwrite(f.lit(True))
        else:
            writing.append()
        return
    plain = frame.write.format("delta").mode("overwrite" if mode == "overwrite" else "append")
    plain = plain.options(**sink.options, txnAppId=writer, txnVersion=batch_id)
    if sink.partition_by:
        plain = plain.partitionBy(*sink.partition_by)
    plain.save(sink.delta)


def _table_name(sink: SinkSpec) -> str:
    return sink.iceberg or f"delta.`{sink.delta}`"


def _exists(sink: SinkSpec, frame: DataFrame) -> bool:
    spark = frame.sparkSession
    if sink.iceberg:
        return spark.catalog.tableExists(sink.iceberg)
    # The catalog has an error instead of a no for a path at which there is no table yet.
    java: Any = spark._jvm
    is_there: bool = java.io.delta.tables.DeltaTable.isDeltaTable(spark._jsparkSession, sink.delta)
    return is_there


def _newest(sink: SinkSpec, frame: DataFrame) -> DataFrame:
    """One row a key: the greatest by `latest_by`, if several came at once."""
    if not sink.latest_by:
        return frame
    order = Window.partitionBy(*sink.upsert).orderBy(f.col(sink.latest_by).desc_nulls_last())
    ranked = frame.withColumn("_headwater_rank", f.row_number().over(order))
    return ranked.where("_headwater_rank = 1").drop("_headwater_rank")


def _merge(sink: SinkSpec, frame: DataFrame) -> int:
    # A merge reads its rows more than once.
    frame = frame.persist()
    try:
        row_count = frame.count()
        _merge_rows(sink, frame)
    finally:
        frame.unpersist()
    return row_count


def _merge_rows(sink: SinkSpec, frame: DataFrame) -> None:
    view = f"headwater_merge_{sink.name}".replace("-", "_")
    frame.createOrReplaceTempView(view)
    on = " AND ".join(f"old.`{key}` <=> new.`{key}`" for key in sink.upsert)
    frame.sparkSession.sql(
        f"MERGE INTO {_table_name(sink)} old USING `{view}` new ON {on} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
