"""Writes rows as the Parquet files of a table, split by its partition columns.

Used by Spark's tasks (each has one), by compaction and by upserts. Files get names that nobody else
can have, so a task that is tried again, or runs twice, leaves files that no manifest names and
disturbs nobody. At the end every file and its name are on disk, because the manifest that will name
it must not outlive it.

With records of topics each file holds one topic partition, in order of offsets: a file is ended
where the order would break.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from headwater.pipeline.lake.errors import LakeSchemaError
from headwater.pipeline.lake.table.data_file import DataFile, RecordSpan
from headwater.pipeline.lake.table.lake_files import LakeFiles
from headwater.pipeline.lake.table.partition_path import (
    check_partition_column,
    partition_directory,
    value_to_text,
)

DATA_DIRECTORY: Final = "data"
#: Untyped, like most of Arrow.
parquet: Any = pyarrow.parquet

#: A file that has reached this is ended, and another begun.
FILE_BYTES_MAX: Final = 128 << 20
#: Rows are gathered up to this, in memory and not compressed, and become a row group.
ROW_GROUP_BYTES: Final = 32 << 20
COMPRESSION: Final = "zstd"

#: The columns that make rows records of a topic.
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"


class ParquetOutput:
    """Give it rows with `add`, then `finish`; the rows must have the table's columns."""

    def __init__(
        self,
        root: str,
        schema: pa.Schema,
        partition_by: Sequence[str] = (),
        *,
        holds_records: bool = False,
        file_bytes_max: int = FILE_BYTES_MAX,
        files: LakeFiles | None = None,
    ) -> None:
        for name in partition_by:
            check_partition_column(name, schema.field(name).type)
        self._root = root
        self._schema = schema
        self._partition_by = tuple(partition_by)
        self._holds_records = holds_records
        self._file_bytes_max = file_bytes_max
        self._files = files or LakeFiles()
        stored = [field for field in schema if field.name not in self._partition_by]
        if not stored:
            raise LakeSchemaError("A table needs a column that it is not partitioned by.")
        self._stored = pa.schema(stored)
        self._open: dict[tuple[Any, ...], _OpenFile] = {}
        self._directories: set[str] = set()
        self._done: list[DataFile] = []

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        table = table.select(self._schema.names).cast(self._schema)
        split_by = self._partition_by
        if self._holds_records:
            split_by = tuple(dict.fromkeys((*split_by, TOPIC, PARTITION)))
        for part in split(table, split_by):
            self._add_part(part, split_by)

    def finish(self) -> list[DataFile]:
        """End all files; returns what a manifest says of them."""
        for key in list(self._open):
            self._end(key)
        for directory in sorted(self._directories):
            self._files.sync_directory(directory)
        return self._done

    def _add_part(self, part: pa.Table, split_by: tuple[str, ...]) -> None:
        key = tuple(part.column(name)[0].as_py() for name in split_by)
        first = last = -1
        if self._holds_records:
            part = in_order(part)
            first, last = part.column(OFFSET)[0].as_py(), part.column(OFFSET)[-1].as_py()
            if key in self._open and first <= self._open[key].last_offset:
                self._end(key)
        file = self._open.get(key)
        if file is None:
            row = dict(zip(split_by, key, strict=True))
            file = self._open[key] = self._begin(row, first)
        file.last_offset = last
        file.add(part.select(self._stored.names))
        if file.written_bytes >= self._file_bytes_max:
            self._end(key)

    def _begin(self, row: dict[str, Any], first_offset: int) -> _OpenFile:
        values = tuple(value_to_text(row[name]) for name in self._partition_by)
        below = partition_directory(self._partition_by, values)
        relative = f"{DATA_DIRECTORY}/{below}" if below else DATA_DIRECTORY
        directory = self._files.make_directories(self._root, relative)
        self._directories.add(directory)
        span, name = None, uuid.uuid4().hex
        if self._holds_records:
            span = RecordSpan(row[TOPIC], row[PARTITION], first_offset, first_offset)
            name = f"{row[PARTITION]:05d}-{first_offset:020d}-{name}"
        return _OpenFile(
            self._files,
            f"{directory}/{name}.parquet",
            self._stored,
            DataFile(f"{relative}/{name}.parquet", 0, 0, values, span),
        )

    def _end(self, key: tuple[Any, ...]) -> None:
        self._done.append(self._open.pop(key).close())


class _OpenFile:
    """A Parquet file that is being written."""

    def __init__(self, files: LakeFiles, path: str, schema: pa.Schema, file: DataFile) -> None:
        self._files = files
        self._path = path
        self._file = file
        self._schema = schema
        self._stack = contextlib.ExitStack()
        self._sink: BinaryIO = self._stack.enter_context(files.output(path))
        self._writer: Any = parquet.ParquetWriter(
            self._sink, schema, compression=COMPRESSION, write_page_checksum=True
        )
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._row_count = 0
        self.last_offset = -1

    @property
    def written_bytes(self) -> int:
        return self._sink.tell()

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        self._row_count += len(rows)
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> DataFile:
        self._flush()
        self._writer.close()
        # Forces the bytes to disk.
        self._stack.close()
        span = self._file.records
        if span is not None:
            span = RecordSpan(span.topic, span.partition, span.first_offset, self.last_offset)
        return DataFile(
            self._file.path,
            self._files.size_bytes(self._path),
            self._row_count,
            self._file.partition,
            span,
        )

    def _flush(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting).combine_chunks()
            self._writer.write_table(rows, row_group_size=len(rows))
        self._waiting, self._waiting_bytes = [], 0


def split(table: pa.Table, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of each combination of values, in the order in which they stand."""
    if len(table) == 0:
        return
    codes = np.zeros(len(table), np.int64)
    for name in names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        encoded = column.dictionary_encode(null_encoding="encode")
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Made small again after each column, so that no product can overflow.
        _, codes = np.unique(codes * len(encoded.dictionary) + numbers, return_inverse=True)
    if codes.max() == 0:
        yield table
        return
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    for rows in np.split(order, bounds):
        yield table.take(pa.array(rows))


def in_order(records: pa.Table) -> pa.Table:
    """Records of a partition by their offsets."""
    offsets = records.column(OFFSET).to_numpy()
    if (np.diff(offsets) > 0).all():
        return records
    return records.take(pa.array(np.argsort(offsets, kind="stable")))
