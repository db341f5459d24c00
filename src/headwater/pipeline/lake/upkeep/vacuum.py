"""Vacuum: removes old versions, and files that none of those that are left needs, or ever did.

A file that no manifest names may be one that somebody is about to commit, so nothing is removed
that is younger than the given time; it must be longer than any batch takes, and than any reader
reads on at one version. A commit makes sure that its files are still there.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Final

from headwater.pipeline.lake.errors import LakeMissingError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.manifest import version_of_name
from headwater.pipeline.lake.writing.parquet_output import DATA_DIRECTORY

DAY_S: Final = 86_400.0


@dataclass(slots=True)
class VacuumReport:
    version_count: int = 0
    file_count: int = 0
    size_bytes: int = 0


def vacuum(
    table: LakeTable, *, older_than_s: float = DAY_S, now_s: float | None = None
) -> VacuumReport:
    """Remove what nobody has needed for that long; versions that were current since then stay."""
    cutoff_s = (time.time() if now_s is None else now_s) - older_than_s
    report = VacuumReport()
    # Raises if there is no table.
    table.snapshot()
    needed = _oldest_needed(table, int(cutoff_s * 1000))
    report.version_count = table.prune(needed)
    doomed = [*orphans(table, needed), *_leftovers(table)]
    for path in doomed:
        try:
            size_bytes = table.disk.size_bytes(path)
            if table.disk.modified_s(path) > cutoff_s:
                continue
        except FileNotFoundError:
            continue
        table.disk.unlink(path)
        report.file_count += 1
        report.size_bytes += size_bytes
    return report


def orphans(table: LakeTable, since: int | None = None) -> list[str]:
    """Files with data that no version from `since` on consists of, by path.

    Manifests of a few older versions may be left, as those that follow build on them; without
    `since` their files count as needed too.
    """
    # Listed before the manifests are read: whatever is committed meanwhile is then no orphan.
    present = list(table.disk.walk(os.path.join(table.path, DATA_DIRECTORY)))
    versions = table.versions()
    first = since if since is not None else versions[0]
    needed = set(table.snapshot(first).files)
    for version in versions:
        if version > first:
            needed.update(file.path for file in table.manifest(version).added)
    return [path for path in present if path[len(table.path) + 1 :] not in needed]


def _oldest_needed(table: LakeTable, cutoff_ms: int) -> int:
    """The version that was the newest at that time."""
    needed = 1
    for version in table.versions():
        try:
            if table.manifest(version).created_ms > cutoff_ms:
                break
        except LakeMissingError:
            # Somebody else prunes too.
            continue
        needed = version
    return needed


def _leftovers(table: LakeTable) -> list[str]:
    """Files beside the manifests that a crash left there."""
    names = table.disk.names(table.manifest_directory)
    return [
        os.path.join(table.manifest_directory, name)
        for name in names
        if version_of_name(name) is None
    ]
