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

from headwater.base.durations import LONG_MAX

AUDIT_TOPIC: Final = "__audit"
OFFSETS_TOPIC: Final = "__consumer_offsets"

BROKER_TIER: Final = "broker"
GROUP_TIER: Final = "group"
VERSION: Final = 1
NO_EPOCH: Final = -1
_INT_MAX: Final = 2**31 - 1

Row = dict[str, Any]


class AuditRecord(NamedTuple):
    """A row as it is stored: the key names it, the value holds all of it."""

    key: bytes
    value: bytes


class SourceProgress(NamedTuple):
    """Of which log a row tells, and up to where."""

    source: str
    to_offset: int
    #: Of the leader that counted; `NO_EPOCH` if the row does not say.
    leader_epoch: int


#: What tells rows of one stretch apart, by tier.
_NAMES: Final = {
    BROKER_TIER: ("tier", "topic", "partition", "from_offset", "time_bucket_start", "source"),
    GROUP_TIER: ("tier", "group", "topic", "partition", "from_offset", "source"),
}
#: A row that moves nothing forward may be followed by others at the same offset.
_NAMES_APART: Final = ("to_offset", "leader_epoch", "time")


def encode_row(row: Row) -> AuditRecord:
    """The record of a row."""
    names = {name: row[name] for name in _NAMES[row["tier"]]}
    if is_apart(row):
        names |= {name: row[name] for name in _NAMES_APART}
    return AuditRecord(_encode(names), _encode(row))


def is_apart(row: Row) -> bool:
    """Whether the row counts no stretch of records, but tells what befell the partition.

    Such a row is a fact of its own: refusals where nothing was stored, deletions, or that offsets
    which were counted are lost. If nobody answers, the very same row is written again.
    """
    return bool(row["from_offset"] >= row["to_offset"])


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
    if row is None:
        return None
    epoch = row.get("leader_epoch")
    if type(epoch) is not int or not 0 <= epoch <= _INT_MAX:
        epoch = NO_EPOCH
    return SourceProgress(row["source"], row["to_offset"], epoch)


def number_of(row: Row, name: str) -> int:
    """A number of a row; 0 for one that is not there, or is none that a row may have."""
    value = row.get(name)
    return value if type(value) is int and 0 <= value <= LONG_MAX else 0


def points_of(row: Row, name: str, length: int) -> list[list[int]]:
    """The points of a row, each of so many numbers; what is no such point is passed over.

    Whoever may write as an administrator may write rows, so they are not believed to be sound.
    """
    points = row.get(name)
    if not isinstance(points, list):
        return []
    return [
        point
        for point in points
        if isinstance(point, list)
        and len(point) == length
        and all(type(number) is int and 0 <= number <= LONG_MAX for number in point)
    ]


def _is_sound(row: Row) -> bool:
    texts = ("source", "topic", *(("group",) if row["tier"] == GROUP_TIER else ()))
    numbers = ("partition", "from_offset", "to_offset")
    return all(isinstance(row.get(name), str) for name in texts) and all(
        type(row.get(name)) is int and 0 <= row[name] <= LONG_MAX for name in numbers
    )


def _encode(value: Row) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
