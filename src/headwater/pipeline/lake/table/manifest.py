"""A manifest: what one version of a table changed, and now and then all of what the table is.

Versions are numbered from 1. Every manifest says what its commit added and removed. Every
`FULL_INTERVAL`th, beginning with the first, also lists all files, so that a reader needs at most
that many manifests however old the table is, and a commit to a table of ten thousand files mostly
writes the few that are new: a full list of them is some 3 MB, shared by 32 commits. Which versions
are full follows from the number alone, so nobody needs to look for them.

    _manifest/00000000000000000033.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa

from headwater.pipeline.lake.errors import LakeDamagedError
from headwater.pipeline.lake.table.coverage import OffsetRange
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.schema_json import schema_from_json, schema_to_json

FORMAT: Final = 1
FULL_INTERVAL: Final = 32
SUFFIX: Final = ".json"
_VERSION_DIGITS: Final = 20

Operation: TypeAlias = Literal["append", "upsert", "overwrite", "archive", "compact"]
OPERATIONS: Final = get_args(Operation)


@dataclass(frozen=True, slots=True)
class WholeTable:
    """What a full manifest has besides its change: the table as it is after it."""

    files: tuple[DataFile, ...]
    #: The last batch of each writer.
    writers: Mapping[str, int]
    coverage: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    version: int
    created_ms: int
    operation: Operation
    schema: pa.Schema
    partition_by: tuple[str, ...]
    added: tuple[DataFile, ...] = ()
    #: Paths.
    removed: tuple[str, ...] = ()
    #: Whoever numbers its batches; empty for who does not.
    writer: str = ""
    batch_id: int = -1
    ranges: tuple[OffsetRange, ...] = ()
    whole: WholeTable | None = None

    def to_bytes(self) -> bytes:
        value: dict[str, Any] = {
            "format": FORMAT,
            "version": self.version,
            "created_ms": self.created_ms,
            "operation": self.operation,
            "writer": self.writer,
            "batch_id": self.batch_id,
            "schema": schema_to_json(self.schema),
            "partition_by": list(self.partition_by),
            "added": [file.to_json() for file in self.added],
            "removed": list(self.removed),
            "ranges": [each.to_json() for each in self.ranges],
        }
        if self.whole is not None:
            value["table"] = {
                "files": [file.to_json() for file in self.whole.files],
                "writers": dict(self.whole.writers),
                "coverage": [each.to_json() for each in self.whole.coverage],
            }
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes, version: int) -> Manifest:
        """Raises `LakeDamagedError` for what is not the manifest of that version."""
        try:
            value = json.loads(data)
            if value["format"] != FORMAT:
                raise LakeDamagedError(
                    f"Manifest {version} has format {value['format']}, and this Headwater knows "
                    f"{FORMAT} only."
                )
            manifest = cls(
                version=int(value["version"]),
                created_ms=int(value["created_ms"]),
                operation=value["operation"],
                schema=schema_from_json(value["schema"]),
                partition_by=tuple(map(str, value["partition_by"])),
                added=tuple(map(DataFile.from_json, value["added"])),
                removed=tuple(map(str, value["removed"])),
                writer=str(value["writer"]),
                batch_id=int(value["batch_id"]),
                ranges=tuple(map(OffsetRange.from_json, value["ranges"])),
                whole=_whole(value["table"]) if "table" in value else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LakeDamagedError(
                f"Manifest {version} cannot be read: {type(error).__name__}: {error}."
            ) from None
        if manifest.version != version or manifest.operation not in OPERATIONS:
            raise LakeDamagedError(
                f"Manifest {version} says that it is version {manifest.version}, made by "
                f"{manifest.operation!r}."
            )
        if is_full(version) and manifest.whole is None:
            raise LakeDamagedError(f"Manifest {version} should list the whole table, and does not.")
        return manifest


def is_full(version: int) -> bool:
    return version % FULL_INTERVAL == 1


def full_version_before(version: int) -> int:
    """The newest full version that is not after this one."""
    return (version - 1) // FULL_INTERVAL * FULL_INTERVAL + 1


def manifest_name(version: int) -> str:
    return f"{version:0{_VERSION_DIGITS}d}{SUFFIX}"


def version_of_name(name: str) -> int | None:
    """The version that a file's name stands for; None for other files."""
    number = name.removesuffix(SUFFIX)
    if name.endswith(SUFFIX) and len(number) == _VERSION_DIGITS and number.isascii():
        return int(number) if number.isdigit() else None
    return None


def _whole(value: Mapping[str, Any]) -> WholeTable:
    return WholeTable(
        tuple(map(DataFile.from_json, value["files"])),
        {str(writer): int(batch_id) for writer, batch_id in value["writers"].items()},
        tuple(map(OffsetRange.from_json, value["coverage"])),
    )
