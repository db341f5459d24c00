"""`verify`: is a lake table what its manifests say, and an archive without gap or repetition?

It only reads, and may run beside writers. Each finding is a sentence; the table is sound if none of
them is a problem. Examined are: the chain of manifests; every file's existence, size, rows and
columns; with `deep` all bytes of them, by their checksums; for archives the offsets of all records
against the ranges that were archived; and, if a cluster is named, the records that it still has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.verify.cluster import verify_cluster
from headwater.pipeline.lake.verify.files import verify_files, verify_orphans
from headwater.pipeline.lake.verify.finding import Finding
from headwater.pipeline.lake.verify.manifests import verify_manifests
from headwater.pipeline.lake.verify.records import verify_records


def verify(
    table: LakeTable | str | os.PathLike[str],
    *,
    bootstrap_servers: str | None = None,
    client_settings: Mapping[str, object] | None = None,
    deep: bool = False,
) -> list[Finding]:
    """All findings, problems and notes; raises `LakeMissingError` if there is no table."""
    lake = table if isinstance(table, LakeTable) else LakeTable(table)
    findings: list[Finding] = []
    snapshot = verify_manifests(lake, findings)
    if snapshot is not None:
        sound = verify_files(lake, snapshot, findings, deep=deep)
        verify_records(lake, snapshot, sound, findings)
        verify_orphans(lake, findings)
        if bootstrap_servers is not None and len(sound) == len(snapshot.files):
            verify_cluster(lake, snapshot, bootstrap_servers, client_settings or {}, findings)
    return findings
