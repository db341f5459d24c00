"""Compaction: many small files become few, rows stay as they are, readers notice nothing.

The new files are written beside the old ones, and one commit exchanges them. If anybody replaced
one of the old files meanwhile (an upsert, another compaction), that commit is a conflict: what was
written is removed, and the rest is planned again from the newest version. Files that others add
meanwhile are no conflict. The old files stay on disk for readers of older versions until `vacuum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headwater.base.checks import check
from headwater.pipeline.lake.errors import LakeConflictError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.table.change import Change
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.upkeep.compaction_plan import EAGER, CompactionOptions, plan_compaction
from headwater.pipeline.lake.upkeep.vacuum import vacuum
from headwater.pipeline.lake.writing.parquet_output import ParquetOutput

#: Groups that one commit exchanges: few enough that a conflict wastes little.
COMMIT_GROUPS: Final = 16
CONFLICTS_MAX: Final = 5


@dataclass(slots=True)
class CompactionReport:
    removed_count: int = 0
    added_count: int = 0
    row_count: int = 0
    conflict_count: int = 0


def compact(table: LakeTable, options: CompactionOptions = EAGER) -> CompactionReport:
    """Join small files until the options find none, or others keep being quicker."""
    report = CompactionReport()
    while report.conflict_count < CONFLICTS_MAX:
        snapshot = table.snapshot()
        groups = plan_compaction(snapshot.files.values(), options)
        if not groups:
            break
        added = _joined(table, snapshot, groups[:COMMIT_GROUPS])
        removed = [file for group in groups[:COMMIT_GROUPS] for file in group]
        row_count = sum(file.row_count for file in removed)
        check(
            sum(file.row_count for file in added) == row_count,
            "compaction changed the number of rows",
        )
        try:
            table.commit(
                Change("compact", tuple(added), removed=tuple(file.path for file in removed))
            )
        except LakeConflictError:
            table.remove_files(added)
            report.conflict_count += 1
            continue
        report.removed_count += len(removed)
        report.added_count += len(added)
        report.row_count += row_count
        if len(added) >= len(removed):
            # Rows can take more room together than apart; then there is nothing to win.
            break
    return report


def maintain(table: LakeTable, options: CompactionOptions, vacuum_after_s: float) -> None:
    """What a writer does after a commit: compact, if there is enough of it, and then vacuum."""
    if options.from_files < 2 or not plan_compaction(table.newest().files.values(), options):
        return
    compact(table, options)
    vacuum(table, older_than_s=vacuum_after_s)


def _joined(
    table: LakeTable, snapshot: Snapshot, groups: Sequence[Sequence[DataFile]]
) -> list[DataFile]:
    reader = TableReader(table.path, snapshot, None, table.disk)
    added: list[DataFile] = []
    for group in groups:
        output = ParquetOutput(
            table.path,
            snapshot.schema,
            snapshot.partition_by,
            holds_records=group[0].records is not None,
            files=table.disk,
        )
        for file in group:
            for rows in reader.batches(file):
                output.add(rows)
        added += output.finish()
    return added
