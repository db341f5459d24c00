"""Upsert: rows of a batch take the place of those with the same key; others stay.

By copy on write: the batch's rows are new files; each older file that has some of the keys is
written again without those rows. That costs, for each batch, reading the key columns of all files
(only those of the same partitions, if all columns that the table is partitioned by are part of the
key), and writing anew every file that is hit, one after the other. So it suits tables of results,
up to some millions of rows, or ones partitioned so that a batch hits few files; readers pay
nothing. The keys are matched in the memory of the driver, some millions at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.writing.key_match import first_repeated, matching
from headwater.pipeline.lake.writing.parquet_output import ParquetOutput

#: Older keys that are matched at once.
KEYS_AT_ONCE: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Replacement:
    """What becomes of older files: these are removed, and these hold the rows that stay."""

    removed: tuple[str, ...]
    added: tuple[DataFile, ...]


def batch_keys(table: LakeTable, batch: Snapshot, keys: Sequence[str]) -> pa.Table:
    """The keys in the files of a batch, which must differ from each other."""
    found = TableReader(table.path, batch, keys, table.disk).table(batch.files.values())
    repeated = first_repeated(found)
    if repeated is not None:
        key = ", ".join(f"{name} = {found.column(name)[repeated].as_py()}" for name in keys)
        raise LakeError(
            f"The batch has two rows with the key {key}, and nothing says which one stays: name a "
            "column whose greatest value does (latest_by), or deduplicate first."
        )
    return found


def replace_matching(
    table: LakeTable, snapshot: Snapshot, batch: Snapshot, keys: Sequence[str], wanted: pa.Table
) -> Replacement:
    """Write those older files anew that have keys of the batch."""
    if not snapshot.files:
        return Replacement((), ())
    reader = TableReader(table.path, snapshot, keys, table.disk)
    removed: list[str] = []
    added: list[DataFile] = []
    for some in _portions(_candidates(snapshot, batch, keys)):
        hits = matching(wanted, [reader.table([file]) for file in some])
        for file, hit in zip(some, hits, strict=True):
            if hit.any():
                removed.append(file.path)
                added += _without(table, snapshot, file, hit)
    return Replacement(tuple(removed), tuple(added))


def _candidates(snapshot: Snapshot, batch: Snapshot, keys: Sequence[str]) -> Iterable[DataFile]:
    if not snapshot.partition_by or not set(snapshot.partition_by) <= set(keys):
        return snapshot.files.values()
    hit = {file.partition for file in batch.files.values()}
    return [file for file in snapshot.files.values() if file.partition in hit]


def _portions(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    portion: list[DataFile] = []
    row_count = 0
    for file in files:
        if portion and row_count + file.row_count > KEYS_AT_ONCE:
            yield portion
            portion, row_count = [], 0
        portion.append(file)
        row_count += file.row_count
    if portion:
        yield portion


def _without(
    table: LakeTable, snapshot: Snapshot, file: DataFile, hit: npt.NDArray[np.bool_]
) -> list[DataFile]:
    """A file's rows but those that are hit, as new files."""
    if hit.all():
        return []
    reader = TableReader(table.path, snapshot, None, table.disk)
    output = ParquetOutput(table.path, snapshot.schema, snapshot.partition_by, files=table.disk)
    done = 0
    for rows in reader.batches(file):
        stays = ~hit[done : done + len(rows)]
        output.add(rows.filter(pa.array(stays)))
        done += len(rows)
    return output.finish()
