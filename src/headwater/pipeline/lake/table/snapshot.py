"""A version of a table as a value: its files, its columns, who wrote how far.

`first_snapshot` begins with a full manifest, `next_snapshot` adds the change of another. Both
refuse a manifest that does not fit, because a reader must not make something up; `faults` says what
does not, for who wants to report it and go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.base.ids import TopicPartition
from headwater.pipeline.lake.errors import LakeDamagedError, LakeOverlapError
from headwater.pipeline.lake.table.coverage import OffsetRange, with_ranges
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.manifest import Manifest, WholeTable


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Version 0 is the table that nobody has written to."""

    version: int = 0
    created_ms: int = 0
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    partition_by: tuple[str, ...] = ()
    #: By path.
    files: Mapping[str, DataFile] = field(default_factory=dict)
    #: The last batch of each writer.
    writers: Mapping[str, int] = field(default_factory=dict)
    coverage: Mapping[TopicPartition, tuple[OffsetRange, ...]] = field(default_factory=dict)

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.files.values())

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())

    def whole(self) -> WholeTable:
        """As a full manifest lists it."""
        return WholeTable(
            tuple(self.files.values()),
            self.writers,
            tuple(one for ranges in self.coverage.values() for one in ranges),
        )


def first_snapshot(manifest: Manifest) -> Snapshot:
    """The table as a full manifest lists it."""
    whole = manifest.whole
    if whole is None:
        raise LakeDamagedError(f"Manifest {manifest.version} does not list the whole table.")
    twice = repeated(file.path for file in whole.files)
    if twice:
        raise LakeDamagedError(f"Manifest {manifest.version} lists {twice[0]} twice.")
    try:
        coverage = with_ranges({}, whole.coverage)
    except LakeOverlapError as error:
        raise LakeDamagedError(f"In manifest {manifest.version}: {error}") from None
    return Snapshot(
        manifest.version,
        manifest.created_ms,
        manifest.schema,
        manifest.partition_by,
        {file.path: file for file in whole.files},
        dict(whole.writers),
        coverage,
    )


def next_snapshot(before: Snapshot, manifest: Manifest) -> Snapshot:
    """The table after the manifest's change; raises `LakeDamagedError` if that does not fit."""
    found = faults(before, manifest)
    if found:
        raise LakeDamagedError(found[0])
    removed = set(manifest.removed)
    files = {path: file for path, file in before.files.items() if path not in removed}
    files.update((file.path, file) for file in manifest.added)
    writers = before.writers
    if manifest.writer:
        writers = {**writers, manifest.writer: manifest.batch_id}
    return Snapshot(
        manifest.version,
        manifest.created_ms,
        manifest.schema,
        manifest.partition_by,
        files,
        writers,
        with_ranges(before.coverage, manifest.ranges) if manifest.ranges else before.coverage,
    )


def faults(before: Snapshot, manifest: Manifest) -> list[str]:
    """What keeps a manifest from following a version, in sentences."""
    name = f"Manifest {manifest.version}"
    found = []
    if manifest.version != before.version + 1:
        found.append(f"{name} follows version {before.version}: those between are missing.")
    paths = [file.path for file in manifest.added]
    found += [f"{name} adds {path} twice." for path in repeated(paths)]
    kept = before.files.keys() - set(manifest.removed)
    found += [
        f"{name} adds {path}, which is in the table already." for path in paths if path in kept
    ]
    found += [
        f"{name} removes {path}, which is not in the table."
        for path in manifest.removed
        if path not in before.files
    ]
    try:
        with_ranges(before.coverage, manifest.ranges)
    except LakeOverlapError as error:
        found.append(f"In manifest {manifest.version}: {error}")
    return found


def repeated(paths: Iterable[str]) -> list[str]:
    """Those that come more than once."""
    return [path for path, count in Counter(paths).items() if count > 1]
