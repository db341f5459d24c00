"""The records of `__audit`: rows in JSON that tools, Spark and people can read.

A row of the *broker* tier says what lies in one stretch of offsets of a partition, for one bucket
of record time. A row of the *group* tier says which offsets a group committed for one partition, as
they stand in one stretch of a partition of `__consumer_offsets`. Stretches of one source never
overlap and leave nothing out, so whoever adds up rows counts each record once. Names are those of
LinkedIn's audit and of Chaperone where they have one: `tier`, `host`, `time_bucket_start`,
`time_bucket_end`, `count`, `bytes`.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

AUDIT_TOPIC: Final = "__audit"
OFFSETS_TOPIC: Final = "__consumer_offsets"

BROKER_TIER: Final = "broker"
GROUP_TIER: Final = "group"
VERSION: Final = 1

Row = dict[str, Any]


class AuditRecord(NamedTuple):
    """A row as it is stored: the key names it, the value holds all of it."""

    key: bytes
    value: bytes


class SourceProgress(NamedTuple):
    """Of which log a row tells, and up to where."""

    source: str
    to_offset: int


#: What tells rows of one stretch apart, by tier.
_NAMES: Final = {
    BROKER_TIER: ("tier", "topic", "partition", "from_offset", "time_bucket_start", "source"),
    GROUP_TIER: ("tier", "group", "topic", "partition", "from_offset", "source"),
}


def encode_row(row: Row) -> AuditRecord:
    """The record of a row."""
    names = {name: row[name] for name in _NAMES[row["tier"]]}
    return AuditRecord(_encode(names), _encode(row))


def decode_row(value: bytes | memoryview | bytearray) -> Row | None:
    """The row of a record; None if it is none, or of a later version."""
    try:
        row = json.loads(bytes(value))
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.get("version") != VERSION:
        return None
    tier = row.get("tier")
    return row if isinstance(tier, str) and tier in _NAMES and _is_sound(row) else None


def read_progress(value: bytes) -> SourceProgress | None:
    """What a row says about its source; None if it is no row."""
    row = decode_row(value)
    return None if row is None else SourceProgress(row["source"], row["to_offset"])


def _is_sound(row: Row) -> bool:
    texts = ("source", "topic", *(("group",) if row["tier"] == GROUP_TIER else ()))
    numbers = ("partition", "from_offset", "to_offset")
    return all(isinstance(row.get(name), str) for name in texts) and all(
        type(row.get(name)) is int for name in numbers
    )


def _encode(value: Row) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
