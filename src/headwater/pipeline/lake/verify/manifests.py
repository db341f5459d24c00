"""The chain of manifests, followed from the oldest that is kept, faults reported and passed over.

A full manifest must list what the changes before it add up to. Behind a fault the walk goes on as
well as it can, so that one damaged manifest does not hide the state of the files.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.base.counted import counted
from headwater.pipeline.lake.errors import LakeDamagedError, LakeMissingError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.manifest import Manifest, WholeTable
from headwater.pipeline.lake.table.snapshot import (
    Snapshot,
    faults,
    first_snapshot,
    next_snapshot,
    repeated,
)
from headwater.pipeline.lake.verify.finding import Finding, problem


def verify_manifests(table: LakeTable, findings: list[Finding]) -> Snapshot | None:
    """The newest version, as far as the manifests tell; None if they do not."""
    versions = table.versions()
    if not versions:
        raise LakeMissingError(f"There is no lake table at {table.path}.")
    known: Snapshot | None = None
    for version in versions:
        try:
            manifest = table.manifest(version)
        except LakeDamagedError as error:
            findings.append(problem(str(error)))
            known = None if known is None else replace(known, version=version)
            continue
        except LakeMissingError:
            # Pruned since it was listed.
            continue
        known = _first(manifest, findings) if known is None else _next(known, manifest, findings)
    if known is None:
        findings.append(problem(f"No manifest of {table.path} lists the whole table."))
    return known


def _first(manifest: Manifest, findings: list[Finding]) -> Snapshot | None:
    if manifest.whole is None:
        findings.append(
            problem(f"Manifest {manifest.version} has none before it that lists the whole table.")
        )
        return None
    return _begin(manifest, manifest.whole, findings)


def _begin(manifest: Manifest, whole: WholeTable, findings: list[Finding]) -> Snapshot:
    for path in repeated(file.path for file in whole.files):
        findings.append(problem(f"Manifest {manifest.version} lists {path} twice."))
    once = {file.path: file for file in whole.files}
    whole = replace(whole, files=tuple(once.values()))
    try:
        return first_snapshot(replace(manifest, whole=whole))
    except LakeDamagedError as error:
        findings.append(problem(str(error)))
        return first_snapshot(replace(manifest, whole=replace(whole, coverage=())))


def _next(known: Snapshot, manifest: Manifest, findings: list[Finding]) -> Snapshot:
    found = faults(known, manifest)
    findings += [problem(sentence) for sentence in found]
    if found:
        known = replace(known, version=manifest.version - 1)
        added = {file.path: file for file in manifest.added if file.path not in known.files}
        sound = replace(
            manifest,
            added=tuple(added.values()),
            removed=tuple(path for path in manifest.removed if path in known.files),
        )
        if faults(known, sound):
            sound = replace(sound, ranges=())
        after = next_snapshot(known, sound)
    else:
        after = next_snapshot(known, manifest)
    if manifest.whole is None:
        return after
    listed = _begin(manifest, manifest.whole, findings)
    if not found and (listed.files, listed.writers, listed.coverage) != (
        after.files,
        after.writers,
        after.coverage,
    ):
        findings.append(
            problem(
                f"Manifest {manifest.version} does not list what the changes before it add up to: "
                f"{counted(len(listed.files), 'file')} instead of {len(after.files):,}, or other "
                "offsets."
            )
        )
    return listed
