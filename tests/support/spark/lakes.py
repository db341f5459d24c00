"""Lake tables without Spark: rows and archived records written straight with Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_json import SourceOffsets
from headwater.pipeline.lake.checkpoint import batch_ranges
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.change import Change
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.schema_json import normal_schema
from headwater.pipeline.lake.writing.archive import PARTITION_BY, archive_schema, dated
from headwater.pipeline.lake.writing.batch_commit import WrittenBatch, commit_batch, write_mode
from headwater.pipeline.lake.writing.parquet_output import ParquetOutput

DAY_MS = 86_400_000
#: A moment in January 2026, at the beginning of a day.
START_MS = 20_454 * DAY_MS

RECORD_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def write_rows(
    table: LakeTable,
    rows: pa.Table,
    *,
    mode: str = "append",
    keys: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    writer: str = "",
    batch_id: int = -1,
) -> bool:
    """What `write_batch` does with a frame."""
    schema = normal_schema(rows.schema)
    output = ParquetOutput(table.path, schema, partition_by, files=table.disk)
    output.add(rows)
    return commit_batch(
        table,
        WrittenBatch(
            tuple(output.finish()),
            schema,
            write_mode(mode, keys),
            tuple(keys),
            tuple(partition_by),
            writer,
            batch_id,
        ),
    )


def record(
    partition: int, offset: int, *, topic: str = "orders", time_ms: int | None = None
) -> dict[str, Any]:
    """A record whose content follows from its place."""
    place = f"{topic}-{partition}-{offset}"
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": (START_MS + offset * 60_000 if time_ms is None else time_ms) * 1000,
        "timestampType": 0,
        "key": None if offset % 5 == 4 else f"key-{offset % 7}".encode(),
        "value": None if offset % 11 == 10 else place.encode(),
        "headers": [{"key": "place", "value": place.encode()}] if offset % 3 == 0 else None,
    }


def records_table(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(records), schema=RECORD_SCHEMA)


def write_record_files(table: LakeTable, records: Sequence[Mapping[str, Any]]) -> list[DataFile]:
    """The files of a batch, that no manifest names yet."""
    rows = records_table(records)
    schema = archive_schema(normal_schema(rows.schema))
    output = ParquetOutput(table.path, schema, PARTITION_BY, holds_records=True, files=table.disk)
    for batch in rows.to_batches():
        output.add(dated(batch))
    return output.finish()


def archive(
    table: LakeTable,
    records: Sequence[Mapping[str, Any]],
    *,
    before: Mapping[tuple[str, int], int] | None,
    after: Mapping[tuple[str, int], int],
    batch_id: int,
    writer: str = "archive",
) -> bool:
    """What `archive_batch` does with a frame; `before` and `after` are the ends of batches."""
    files = write_record_files(table, records)
    ranges = batch_ranges(None if before is None else _offsets(before), _offsets(after), files)
    return table.commit(
        Change(
            "archive",
            tuple(files),
            schema=archive_schema(normal_schema(RECORD_SCHEMA)),
            partition_by=PARTITION_BY,
            writer=writer,
            batch_id=batch_id,
            ranges=ranges,
        )
    )


def archive_numbers(
    table: LakeTable, batch_id: int, first: int, last: int, *, partitions: Sequence[int] = (0, 1)
) -> bool:
    """Offsets `first` up to `last` of some partitions of `orders`."""
    records = [record(number, offset) for number in partitions for offset in range(first, last)]
    return archive(
        table,
        records,
        before={("orders", number): first for number in partitions},
        after={("orders", number): last for number in partitions},
        batch_id=batch_id,
    )


def _offsets(positions: Mapping[tuple[str, int], int]) -> SourceOffsets:
    return SourceOffsets({TopicPartition(*one): offset for one, offset in positions.items()})


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as values, in an order that does not depend on files."""
    return sorted(table.to_pylist(), key=repr)
