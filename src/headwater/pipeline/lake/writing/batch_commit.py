"""Files that were written for a batch become part of a table: appended, merged or in its place.

The part of writing a batch that needs no Spark. Whatever wrote the files, they are committed once
for a writer's batch number, and what is not committed is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from headwater.pipeline.lake.errors import LakeConflictError, LakeError, LakeSchemaError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.change import Change, check_kind, is_committed
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.writing.upsert import batch_keys, replace_matching

WriteMode: TypeAlias = Literal["append", "upsert", "overwrite"]
#: Spark's names of output modes mean these.
MODE_NAMES: Final[dict[str, WriteMode]] = {
    "append": "append",
    "upsert": "upsert",
    "update": "upsert",
    "overwrite": "overwrite",
    "complete": "overwrite",
}
UPSERT_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """Files that nobody names yet, and what is to be done with them."""

    files: tuple[DataFile, ...]
    schema: pa.Schema
    mode: WriteMode
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    writer: str = ""
    batch_id: int = -1


def write_mode(name: str, keys: Sequence[str]) -> WriteMode:
    """What a mode's name means; upserts need keys."""
    mode = MODE_NAMES.get(name)
    if mode is None:
        raise LakeError(
            f"A lake table is written with mode append, upsert or overwrite, not {name!r}."
        )
    if mode == "upsert" and not keys:
        raise LakeError("An upsert needs the columns of the key.")
    return mode


def commit_batch(table: LakeTable, batch: WrittenBatch) -> bool:
    """Make the files part of the table; False if the batch was there already."""
    try:
        if batch.mode == "upsert":
            committed = _upsert(table, batch)
        elif not batch.files and batch.mode == "append" and table.exists():
            return True
        else:
            committed = table.commit(
                Change(
                    batch.mode,
                    batch.files,
                    removes_all=batch.mode == "overwrite",
                    schema=batch.schema,
                    partition_by=batch.partition_by,
                    writer=batch.writer,
                    batch_id=batch.batch_id,
                )
            )
    except LakeError:
        table.remove_files(batch.files)
        raise
    if not committed:
        table.remove_files(batch.files)
    return committed


def _upsert(table: LakeTable, batch: WrittenBatch) -> bool:
    for name in batch.keys:
        if name not in batch.schema.names:
            raise LakeSchemaError(
                f"There is no column {name!r} to be a key; there are "
                f"{', '.join(map(repr, batch.schema.names))}."
            )
    if not batch.files and table.exists():
        return True
    rows = Snapshot(
        schema=batch.schema,
        partition_by=batch.partition_by,
        files={file.path: file for file in batch.files},
    )
    wanted = batch_keys(table, rows, batch.keys)
    for _ in range(UPSERT_ATTEMPTS):
        snapshot = table.newest()
        if is_committed(snapshot, batch.writer, batch.batch_id):
            return False
        _check_may_upsert(snapshot, batch)
        replacement = replace_matching(table, snapshot, rows, batch.keys, wanted)
        try:
            return table.commit(
                Change(
                    "upsert",
                    (*batch.files, *replacement.added),
                    removed=replacement.removed,
                    schema=batch.schema,
                    partition_by=batch.partition_by,
                    base_version=snapshot.version,
                    writer=batch.writer,
                    batch_id=batch.batch_id,
                )
            )
        except LakeConflictError:
            table.remove_files(replacement.added)
    raise LakeConflictError(
        f"{table.path} changed {UPSERT_ATTEMPTS} times while a batch was being merged into it."
    )


def _check_may_upsert(snapshot: Snapshot, batch: WrittenBatch) -> None:
    check_kind(snapshot, "upsert")
    missing = [name for name in batch.keys if name not in snapshot.schema.names]
    if snapshot.version and missing:
        raise LakeSchemaError(f"The table has no column {missing[0]!r} to be a key.")
