"""The rows of stages: how many records of which time one of them has seen, as JSON in a topic.

Each row counts what was seen since the row before it, so whoever adds rows up counts each record
once. The key names a row by the stage's process and a sequence: a row that was sent twice, because
nobody answered, is one row. Who counts a piece of work anew, such as a batch that Spark runs again,
tells it under the same process and sequence, and what was told last counts. Names are those of the
rows of `__audit`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

STAGES_TOPIC: Final = "__audit_stages"
#: The tier of a stage of one's own; others say what they are.
STAGE_TIER: Final = "stage"
VERSION: Final = 1

Row: TypeAlias = dict[str, Any]

#: What names all rows that were published together.
_PUBLICATION: Final = ("tier", "stage", "host", "process", "sequence")
#: What names a row.
_NAMES: Final = (
    "tier",
    "stage",
    "topic",
    "partition",
    "time_bucket_start",
    "host",
    "process",
    "sequence",
)
_TEXTS: Final = ("tier", "stage", "topic", "host", "process")
_NUMBERS: Final = ("partition", "time_bucket_start", "time_bucket_end", "sequence", "count")


class StageRecord(NamedTuple):
    """A row as it is stored."""

    key: bytes
    value: bytes


def encode_stage_row(row: Row) -> StageRecord:
    names = {name: row[name] for name in _NAMES}
    return StageRecord(_encode(names), _encode({"version": VERSION, **row}))


def decode_stage_row(value: bytes | memoryview | bytearray) -> Row | None:
    """The row of a record; None if it is none, or of a later version."""
    try:
        row = json.loads(bytes(value))
    except ValueError:
        return None
    if not isinstance(row, dict) or row.get("version") != VERSION:
        return None
    is_sound = all(isinstance(row.get(name), str) for name in _TEXTS) and all(
        type(row.get(name)) is int for name in _NUMBERS
    )
    return row if is_sound else None


def _encode(value: Row) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


@dataclass(slots=True)
class StageSum:
    """What a stage has seen of a topic's records of a stretch of time."""

    tier: str
    stage: str
    count: int = 0
    #: Of a producer: what it could not have written.
    given_up_count: int = 0
    bytes: int = 0
    latency_ms_max: int = 0
    #: What it could not tell apart, and did not count.
    uncounted_count: int = 0
    #: By the start of the bucket.
    count_by_bucket: dict[int, int] = field(default_factory=dict)


def sum_stages(rows: Iterable[Row], topic: str, from_ms: int, to_ms: int) -> list[StageSum]:
    """Rows added up by stage, for buckets that begin in [from_ms, to_ms)."""
    sums: dict[tuple[str, str], StageSum] = {}
    seen: set[tuple[object, ...]] = set()
    told = list(rows)
    last_ms: dict[tuple[object, ...], int] = {}
    for row in told:
        name = _publication(row)
        last_ms[name] = max(last_ms.get(name, 0), _number(row, "time"))
    for row in told:
        start_ms = row["time_bucket_start"]
        if row["topic"] != topic or not from_ms <= start_ms < to_ms:
            continue
        if _number(row, "time") < last_ms[_publication(row)]:
            continue
        name = tuple(row[each] for each in _NAMES)
        if name in seen:
            continue
        seen.add(name)
        key = (row["tier"], row["stage"])
        total = sums.setdefault(key, StageSum(*key))
        total.count += row["count"]
        total.given_up_count += _number(row, "given_up_count")
        total.bytes += _number(row, "bytes")
        total.uncounted_count += _number(row, "uncounted_count")
        total.latency_ms_max = max(total.latency_ms_max, _number(row, "latency_ms_max"))
        total.count_by_bucket[start_ms] = total.count_by_bucket.get(start_ms, 0) + row["count"]
    return [total for _, total in sorted(sums.items())]


def _publication(row: Row) -> tuple[object, ...]:
    return tuple(row[each] for each in _PUBLICATION)


def _number(row: Row, name: str) -> int:
    value = row.get(name)
    return value if type(value) is int else 0
