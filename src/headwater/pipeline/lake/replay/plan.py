"""In which order a replay sends: small pieces of each partition, always the oldest first.

Within a partition the order is that of offsets. Among partitions the piece whose first record is
oldest comes next, so that readers of the target see time go on in all partitions alike, as they did
when the records were new, instead of one partition after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.pipeline.lake.table.data_file import DataFile


class Piece(NamedTuple):
    """Rows of one archived partition, and the offset to go on from after them."""

    partition: int
    rows: pa.Table
    next_offset: int

    @property
    def first_ms(self) -> int:
        return int(_milliseconds(self.rows.slice(0, 1))[0])


def wanted_files(
    files: Iterable[DataFile], topic: str, from_ms: int | None, until_ms: int | None
) -> dict[int, list[DataFile]]:
    """The files that can hold records of the topic and the times, by archived partition."""
    wanted: dict[int, list[DataFile]] = {}
    first = None if from_ms is None else _date(from_ms)
    last = None if until_ms is None else _date(until_ms)
    for file in files:
        span = file.records
        if span is None or span.topic != topic:
            continue
        day = file.partition[-1] if file.partition else None
        if day is not None:
            if first is not None and date.fromisoformat(day) < first:
                continue
            if last is not None and date.fromisoformat(day) > last:
                continue
        wanted.setdefault(span.partition, []).append(file)
    return wanted


def pieces(
    partition: int,
    batches: Iterable[pa.Table],
    *,
    from_ms: int | None,
    until_ms: int | None,
    row_count_max: int,
) -> Iterator[Piece]:
    """A partition's rows of the wanted times, in pieces."""
    for batch in batches:
        times = _milliseconds(batch)
        is_wanted = np.ones(len(batch), np.bool_)
        if from_ms is not None:
            is_wanted &= times >= from_ms
        if until_ms is not None:
            is_wanted &= times < until_ms
        rows = batch if is_wanted.all() else batch.filter(pa.array(is_wanted))
        for start in range(0, len(rows), row_count_max):
            part = rows.slice(start, row_count_max)
            yield Piece(partition, part, int(part.column("offset")[-1].as_py()) + 1)


def oldest_first(streams: Mapping[int, Iterator[Piece]]) -> Iterator[Piece]:
    """The pieces of all partitions."""
    heads = {}
    for partition, stream in streams.items():
        head = next(stream, None)
        if head is not None:
            heads[partition] = head
    while heads:
        partition = min(heads, key=lambda each: (heads[each].first_ms, each))
        yield heads.pop(partition)
        head = next(streams[partition], None)
        if head is not None:
            heads[partition] = head


def _milliseconds(rows: pa.Table) -> np.typing.NDArray[np.int64]:
    times = rows.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False)
    return times.cast(pa.int64()).fill_null(-1).to_numpy()  # type: ignore[no-any-return]


def _date(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms / 1000, UTC).date()
