"""Rows of a version of a table, as Arrow reads them and as Spark does: the same.

Both read exactly the files that the manifest names. A reader that is pointed at the directory
`data` by itself may also see files of commits that are not yet, or never, made, and those that were
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.pipeline.lake.errors import LakeDamagedError, LakeSchemaError
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.lake_files import LakeFiles
from headwater.pipeline.lake.table.partition_path import value_from_text
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.writing.parquet_output import DATA_DIRECTORY, parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 65_536


class TableReader:
    """Reads files of one snapshot with Arrow; `columns` in the order wanted, None for all."""

    def __init__(
        self,
        root: str,
        snapshot: Snapshot,
        columns: Sequence[str] | None = None,
        files: LakeFiles | None = None,
    ) -> None:
        self._root = root
        self._snapshot = snapshot
        self._files = files or LakeFiles()
        schema = snapshot.schema
        for name in columns or ():
            if name not in schema.names:
                raise LakeSchemaError(
                    f"The table has no column {name!r}; it has "
                    f"{', '.join(map(repr, schema.names))}."
                )
        wanted = schema.names if columns is None else columns
        self.schema = pa.schema([schema.field(name) for name in wanted])

    def open(self, file: DataFile, *, checked: bool = False) -> Any:
        """Raises `LakeDamagedError` if the file is missing or no Parquet.

        What is read from it is held against its checksums if that is wanted.
        """
        try:
            return parquet.ParquetFile(
                self._files.source(f"{self._root}/{file.path}"), page_checksum_verification=checked
            )
        except FileNotFoundError:
            raise LakeDamagedError(
                f"{file.path} is missing: version {self._snapshot.version} was vacuumed, or the "
                "file is lost."
            ) from None
        except (OSError, pa.ArrowException) as error:
            raise LakeDamagedError(f"{file.path} cannot be read: {_first_line(error)}") from None

    def batches(self, file: DataFile, row_count: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """The rows of a file, as they stand in it."""
        with self.open(file) as opened:
            there = set(opened.schema_arrow.names)
            stored = [name for name in self.schema.names if name in there]
            try:
                for batch in opened.iter_batches(row_count, columns=stored):
                    yield self._complete(batch, file)
            except (OSError, pa.ArrowException) as error:
                raise LakeDamagedError(
                    f"{file.path} cannot be read: {_first_line(error)}"
                ) from None

    def table(self, files: Iterable[DataFile]) -> pa.Table:
        parts = [batch for file in files for batch in self.batches(file)]
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def _complete(self, batch: pa.RecordBatch, file: DataFile) -> pa.Table:
        """With partition columns, and null for columns that are newer than the file."""
        partition = dict(zip(self._snapshot.partition_by, file.partition, strict=True))
        columns: list[Any] = []
        for field in self.schema:
            if field.name in partition:
                value = value_from_text(partition[field.name], field.type)
                columns.append(pa.repeat(pa.scalar(value, field.type), len(batch)))
            elif field.name in batch.schema.names:
                columns.append(batch.column(field.name).cast(field.type))
            else:
                columns.append(pa.nulls(len(batch), field.type))
        if not columns:
            return pa.Table.from_batches([batch])
        return pa.Table.from_arrays(columns, schema=self.schema)


def read_with_spark(root: str, snapshot: Snapshot, spark: SparkSession) -> DataFrame:
    """The files of a snapshot as a DataFrame with the table's columns, in their order."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(snapshot.schema)
    if not snapshot.files:
        return spark.createDataFrame([], schema)
    paths = [_spark_path(f"{root}/{path}") for path in snapshot.files]
    reader = spark.read.schema(schema).option("basePath", _spark_path(f"{root}/{DATA_DIRECTORY}"))
    return reader.parquet(*paths).select(*(f"`{name}`" for name in snapshot.schema.names))


def _spark_path(path: str) -> str:
    """Spark takes paths as patterns; what stands for itself is escaped."""
    escaped = "".join(f"\\{each}" if each in "{}[]*?\\" else each for each in path)
    return f"file:{escaped}" if escaped.startswith("/") else escaped


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") + "."
