"""A change that somebody wants to make to a table, and the decision whether it still holds.

The work (writing Parquet files) is done against one version; by the time it is done there may be
newer ones. `next_manifest` decides, from plain values, what becomes of it on the newest:

- a batch that its writer has committed already is nothing to do: that makes repetition harmless;
- files that are only added fit on any version;
- files that replace others need those to be there still (compaction), or need the very version that
  they were worked out from (upsert), and are a conflict otherwise: do the work again;
- offsets of topics that the table has already are an overlap, and are never taken in twice;
- an archive of topics takes their records only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.base.checks import check
from headwater.pipeline.lake.errors import LakeConflictError, LakeError, LakeSchemaError
from headwater.pipeline.lake.table.coverage import OffsetRange, with_ranges
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.manifest import Manifest, Operation, is_full
from headwater.pipeline.lake.table.schema_json import merged_schema
from headwater.pipeline.lake.table.snapshot import Snapshot, next_snapshot


@dataclass(frozen=True, slots=True)
class Change:
    operation: Operation
    added: tuple[DataFile, ...] = ()
    #: Paths of files that are replaced.
    removed: tuple[str, ...] = ()
    #: Instead of `removed`: whatever there is.
    removes_all: bool = False
    #: The columns of the added rows; None where they are the table's.
    schema: pa.Schema | None = None
    partition_by: tuple[str, ...] = ()
    #: The only version on which this makes sense; None for any.
    base_version: int | None = None
    writer: str = ""
    batch_id: int = -1
    ranges: tuple[OffsetRange, ...] = ()


def is_committed(snapshot: Snapshot, writer: str, batch_id: int) -> bool:
    """Whether this batch of this writer is in the table."""
    return bool(writer) and snapshot.writers.get(writer, -1) >= batch_id


def check_kind(snapshot: Snapshot, operation: Operation) -> None:
    """An archive of topics consists of their records only, or nothing could be proven of it."""
    if operation == "compact":
        return
    if snapshot.coverage and operation != "archive":
        raise LakeError("This table is an archive of topics: it takes their records, nothing else.")
    if operation == "archive" and any(file.records is None for file in snapshot.files.values()):
        raise LakeError("This table is not an archive of topics but has other rows: take another.")


def next_manifest(newest: Snapshot, change: Change, now_ms: int) -> Manifest | None:
    """The manifest that makes the change; None if it was made already."""
    check(bool(change.writer) == (change.batch_id >= 0), "a writer numbers its batches from 0")
    if is_committed(newest, change.writer, change.batch_id):
        return None
    check_kind(newest, change.operation)
    if change.base_version is not None and change.base_version != newest.version:
        raise LakeConflictError(
            f"The table went from version {change.base_version} to {newest.version} meanwhile."
        )
    gone = [path for path in change.removed if path not in newest.files]
    if gone:
        raise LakeConflictError(f"{gone[0]} was replaced by somebody else meanwhile.")
    with_ranges(newest.coverage, change.ranges)
    version = newest.version + 1
    manifest = Manifest(
        version=version,
        created_ms=max(now_ms, newest.created_ms),
        operation=change.operation,
        schema=_schema(newest, change),
        partition_by=newest.partition_by if change.schema is None else change.partition_by,
        added=change.added,
        removed=tuple(newest.files) if change.removes_all else change.removed,
        writer=change.writer,
        batch_id=change.batch_id,
        ranges=change.ranges,
    )
    after = next_snapshot(newest, manifest)
    return replace(manifest, whole=after.whole()) if is_full(version) else manifest


def _schema(newest: Snapshot, change: Change) -> pa.Schema:
    if change.schema is None:
        return newest.schema
    missing = [name for name in change.partition_by if name not in change.schema.names]
    if missing:
        raise LakeSchemaError(
            f"There is no column {missing[0]!r} to partition by; there are "
            f"{', '.join(map(repr, change.schema.names))}."
        )
    if newest.version == 0 or change.removes_all:
        return change.schema
    if change.partition_by != newest.partition_by:
        raise LakeSchemaError(
            f"The table is partitioned by {_listed(newest.partition_by)}, and the batch wants "
            f"{_listed(change.partition_by)}."
        )
    return merged_schema(newest.schema, change.schema)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
