"""The files that a version names, against what it says of them; and those that none names."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from headwater.base.counted import counted
from headwater.pipeline.lake.errors import LakeDamagedError, LakeError, LakeSchemaError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.partition_path import partition_directory
from headwater.pipeline.lake.table.schema_json import normal_schema, type_name
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.upkeep.vacuum import orphans
from headwater.pipeline.lake.verify.finding import Finding, note, problem
from headwater.pipeline.lake.writing.parquet_output import DATA_DIRECTORY

_ORPHANS_NAMED = 3


def verify_files(
    table: LakeTable, snapshot: Snapshot, findings: list[Finding], *, deep: bool
) -> list[DataFile]:
    """The files that are as they should be; `deep` reads all of them, with their checksums."""
    reader = TableReader(table.path, snapshot, None, table.disk)
    sound = []
    for file in snapshot.files.values():
        fault = _fault(table, reader, snapshot, file, deep)
        if fault is None:
            sound.append(file)
        else:
            findings.append(problem(f"{file.path} {fault}"))
    return sound


def verify_orphans(table: LakeTable, findings: list[Finding]) -> None:
    try:
        found = sorted(os.path.relpath(path, table.path) for path in orphans(table))
    except LakeError:
        # Which files are named cannot be told; that was reported of the manifests.
        return
    if found:
        more = len(found) - _ORPHANS_NAMED
        named = ", ".join(found[:_ORPHANS_NAMED]) + (f" and {more} more" if more > 0 else "")
        findings.append(
            note(
                f"Files that no version names: {named}. They are of commits that are being made "
                "or were given up; no reader sees them, and vacuum removes them in time."
            )
        )


def _fault(
    table: LakeTable, reader: TableReader, snapshot: Snapshot, file: DataFile, deep: bool
) -> str | None:
    """The rest of a sentence that begins with the file's name."""
    try:
        size_bytes = table.disk.size_bytes(f"{table.path}/{file.path}")
    except FileNotFoundError:
        return f"is missing, with {counted(file.row_count, 'row')}."
    if size_bytes != file.size_bytes:
        return f"has {size_bytes} bytes, and its manifest says {file.size_bytes}."
    below = partition_directory(snapshot.partition_by, file.partition)
    directory = f"{DATA_DIRECTORY}/{below}" if below else DATA_DIRECTORY
    if file.directory != directory:
        return f"is not in the directory of its partition, {directory}."
    try:
        with reader.open(file, checked=deep) as opened:
            fault = _content_fault(opened, snapshot, file)
            if fault is None and deep:
                for _ in opened.iter_batches():
                    pass
            return fault
    except LakeDamagedError as error:
        return str(error).removeprefix(f"{file.path} ")
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {str(error).splitlines()[0].rstrip('.')}."


def _content_fault(opened: Any, snapshot: Snapshot, file: DataFile) -> str | None:
    row_count = opened.metadata.num_rows
    if row_count != file.row_count:
        return f"has {counted(row_count, 'row')}, and its manifest says {file.row_count:,}."
    try:
        schema = normal_schema(opened.schema_arrow)
    except LakeSchemaError as error:
        return f"has columns that are not the table's: {error}"
    for field in schema:
        if field.name not in snapshot.schema.names or field.name in snapshot.partition_by:
            return f"has a column {field.name!r} that the table does not keep in its files."
        kind = snapshot.schema.field(field.name).type
        if kind != field.type:
            return (
                f"has {field.name!r} as {type_name(field.type)}, and the table as "
                f"{type_name(kind)}."
            )
    return None
