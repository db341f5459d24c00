"""The directory of a table's manifests: each version is made once, by one writer, whole or not.

A manifest is written under a name of its own, forced to disk, and then given its version's name by
`link`, which fails if that name is taken: of two writers of version n one gets it, and the other
reads what happened and tries n + 1. A crash leaves either no version or all of it, and perhaps a
leftover that begins with a dot, which vacuuming removes.

Old versions are pruned, oldest first, so that there are never more than about `KEPT_VERSIONS`. A
writer that slept through so many could make a pruned version anew; it finds out by looking back:
if only newer versions are beside its own, it takes that away again.
"""

from __future__ import annotations

import os
import uuid
from typing import Final

from headwater.pipeline.lake.errors import LakeDamagedError, LakeMissingError
from headwater.pipeline.lake.table.lake_files import LakeFiles
from headwater.pipeline.lake.table.manifest import (
    Manifest,
    full_version_before,
    manifest_name,
    version_of_name,
)
from headwater.pipeline.lake.table.snapshot import Snapshot, first_snapshot, next_snapshot

DIRECTORY: Final = "_manifest"
KEPT_VERSIONS: Final = 1024
_READ_ATTEMPTS: Final = 5


class ManifestStore:
    """Of one table. Remembers the snapshot that it read last, to read only what is newer."""

    def __init__(self, root: str, files: LakeFiles) -> None:
        self._root = root
        self._files = files
        self.directory = os.path.join(root, DIRECTORY)
        self._known = Snapshot()

    def versions(self) -> list[int]:
        """All that there are, oldest first."""
        names = map(version_of_name, self._files.names(self.directory))
        return sorted(version for version in names if version is not None)

    def read(self, version: int) -> Manifest:
        try:
            data = self._files.read(self._path(version))
        except FileNotFoundError:
            raise LakeMissingError(
                f"{self._root} has no version {version}: it was pruned, or never made."
            ) from None
        return Manifest.from_bytes(data, version)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the newest; version 0 if there is none at all."""
        for attempt in range(_READ_ATTEMPTS):
            versions = self.versions()
            wanted = version if version is not None else (versions[-1] if versions else 0)
            try:
                return self._chain(wanted)
            except LakeMissingError:
                # What was listed may be pruned before it is read, if many commits come between.
                if version is not None or attempt == _READ_ATTEMPTS - 1:
                    break
        if version is not None:
            kept = f"{versions[0]} to {versions[-1]}" if versions else "none"
            raise LakeMissingError(
                f"{self._root} has no version {version} any more or yet; there are {kept}."
            )
        raise LakeDamagedError(f"{self._root} lacks manifests that its version {wanted} needs.")

    def create(self, manifest: Manifest) -> bool:
        """Make a version; False if somebody else has made it."""
        self._files.make_directories(self._root, DIRECTORY)
        if manifest.version == 1:
            # Whoever made the table's directory may have died before that was on disk.
            self._files.sync_directory(os.path.dirname(self._root))
        leftover = os.path.join(self.directory, f".{uuid.uuid4().hex}")
        try:
            with self._files.output(leftover) as output:
                output.write(manifest.to_bytes())
            try:
                self._files.link(leftover, self._path(manifest.version))
            except FileExistsError:
                return False
            self._files.sync_directory(self.directory)
        finally:
            self._files.unlink(leftover)
        others = [each for each in self.versions() if each != manifest.version]
        if others and others[0] > manifest.version:
            self._files.unlink(self._path(manifest.version))
            return False
        return True

    def prune(self, before: int) -> int:
        """Remove the versions that no version from `before` on needs; returns how many."""
        needed = full_version_before(max(before, 1))
        # Oldest first: a version is only gone when all that are older are gone.
        doomed = [version for version in self.versions() if version < needed]
        for version in doomed:
            self._files.unlink(self._path(version))
        return len(doomed)

    def _chain(self, version: int) -> Snapshot:
        if version == 0:
            return Snapshot()
        first = full_version_before(version)
        known = self._known
        if not first <= known.version <= version:
            known = first_snapshot(self.read(first))
        for number in range(known.version + 1, version + 1):
            known = next_snapshot(known, self.read(number))
        if known.version > self._known.version:
            self._known = known
        return known

    def _path(self, version: int) -> str:
        return os.path.join(self.directory, manifest_name(version))
