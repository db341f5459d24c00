"""LakeTable: a directory of Parquet files whose manifests say, version by version, what is in it.

    orders-lake/
      data/topic=orders/date=2026-01-31/00000-00000000000000000000-5f0c....parquet
      _manifest/00000000000000000001.json

Readers see what the newest manifest names, or that of a version they ask for, and nothing else:
all of a commit or none of it. Writers first write files, which nobody sees, and then make the next
manifest, which only one of them can (`ManifestStore`). A writer that numbers its batches, as a
streaming query does, commits each number once, however often it tries.

A table lives on a local or mounted POSIX file system; see `LakeFiles`. Any number of processes and
machines may read and write it at once.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from headwater.pipeline.lake.errors import LakeConflictError, LakeMissingError
from headwater.pipeline.lake.reading.table_read import TableReader, read_with_spark
from headwater.pipeline.lake.table.change import Change, next_manifest
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.lake_files import LakeFiles
from headwater.pipeline.lake.table.local_path import local_path
from headwater.pipeline.lake.table.manifest import Manifest, is_full
from headwater.pipeline.lake.table.manifest_store import KEPT_VERSIONS, ManifestStore
from headwater.pipeline.lake.table.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How often a commit tries the next version before it gives up.
COMMIT_ATTEMPTS: Final = 100
_PAUSE_S_MAX: Final = 0.05


class LakeTable:
    """Opening one touches nothing; the first commit makes it."""

    def __init__(self, path: str | os.PathLike[str], *, files: LakeFiles | None = None) -> None:
        self.path: Final = local_path(path)
        self.disk: Final = files or LakeFiles()
        self._manifests: Final = ManifestStore(self.path, self.disk)

    def __repr__(self) -> str:
        return f"LakeTable({self.path!r})"

    def exists(self) -> bool:
        return bool(self._manifests.versions())

    def versions(self) -> list[int]:
        """Those that can be read, oldest first."""
        return self._manifests.versions()

    def snapshot(self, version: int | None = None) -> Snapshot:
        """What a version consists of; the newest unless one is named."""
        snapshot = self._manifests.snapshot(version)
        if snapshot.version == 0:
            raise LakeMissingError(f"There is no lake table at {self.path}.")
        return snapshot

    def newest(self) -> Snapshot:
        """The newest version, which is 0 if nobody has written to the table."""
        return self._manifests.snapshot()

    def files(self, version: int | None = None) -> list[DataFile]:
        return list(self.snapshot(version).files.values())

    def manifest(self, version: int) -> Manifest:
        return self._manifests.read(version)

    def history(self) -> Iterator[Manifest]:
        """The manifests that are kept, newest first."""
        for version in reversed(self.versions()):
            yield self.manifest(version)

    def reader(
        self, columns: Sequence[str] | None = None, version: int | None = None
    ) -> TableReader:
        return TableReader(self.path, self.snapshot(version), columns, self.disk)

    def read_arrow(
        self, columns: Sequence[str] | None = None, version: int | None = None
    ) -> pa.Table:
        """All rows; those of a file are in its order, files in that of the manifest."""
        snapshot = self.snapshot(version)
        return TableReader(self.path, snapshot, columns, self.disk).table(snapshot.files.values())

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """A version with Spark. It stays that version, also when it is read again later."""
        return read_with_spark(self.path, self.snapshot(version), spark)

    def commit(self, change: Change) -> bool:
        """Make a change the next version; False if its writer had it committed already.

        Raises `LakeConflictError` where the change was worked out from what is no longer so.
        """
        for attempt in range(COMMIT_ATTEMPTS):
            self._check_files(change.added)
            manifest = next_manifest(self.newest(), change, time.time_ns() // 1_000_000)
            if manifest is None:
                return False
            if self._manifests.create(manifest):
                if is_full(manifest.version):
                    self._manifests.prune(manifest.version - KEPT_VERSIONS)
                return True
            time.sleep(random.uniform(0, _PAUSE_S_MAX * min(attempt, 10) / 10))
        raise LakeConflictError(
            f"Other writers took the next version of {self.path} {COMMIT_ATTEMPTS} times in a row."
        )

    def prune(self, before: int) -> int:
        """Forget versions before this one; returns how many manifests were removed."""
        return self._manifests.prune(before)

    def remove_files(self, files: Iterable[DataFile]) -> None:
        """Remove files that were written for a commit that did not come about."""
        for file in files:
            self.disk.unlink(f"{self.path}/{file.path}")

    @property
    def manifest_directory(self) -> str:
        return self._manifests.directory

    def _check_files(self, files: Iterable[DataFile]) -> None:
        """A commit that took longer than vacuuming waits may find its files removed."""
        for file in files:
            try:
                fits = self.disk.size_bytes(f"{self.path}/{file.path}") == file.size_bytes
            except FileNotFoundError:
                fits = False
            if not fits:
                raise LakeConflictError(f"{file.path}, written for this commit, is gone.")
