"""Records as columns: numbers in arrays, keys and values as places in one bytes object.

`record_columns` makes them of batches; here they are cut, and made of records that a plain reader
has read: few of them, or those in bytes that only it accepts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from headwater.client.columns.decoding.header_columns import HeaderColumns
from headwater.client.columns.varint_arrays import Longs
from headwater.wire.records import Buffer, Record, TimestampType


class BatchRun(NamedTuple):
    """What the records of one batch have in common, or those of several that do not differ."""

    record_count: int
    timestamp_type: TimestampType
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Row i of every array is record i. Keys and values stand in `data`; a size of -1 is null."""

    data: Buffer
    offsets: Longs
    timestamps: Longs
    key_starts: Longs
    key_sizes: Longs
    value_starts: Longs
    value_sizes: Longs
    #: None if no record has any.
    headers: HeaderColumns | None
    #: Together as many records as there are.
    runs: tuple[BatchRun, ...]
    #: How many of the batches that were given are in here, those without records too.
    batch_count: int = 1

    def __len__(self) -> int:
        return len(self.offsets)

    def part(self, start: int, stop: int) -> "RecordColumns":
        """The records from `start` to before `stop`; nothing is copied."""
        start, stop, _ = slice(start, stop).indices(len(self))
        if start == 0 and stop == len(self):
            return self
        return RecordColumns(
            self.data,
            self.offsets[start:stop],
            self.timestamps[start:stop],
            self.key_starts[start:stop],
            self.key_sizes[start:stop],
            self.value_starts[start:stop],
            self.value_sizes[start:stop],
            None if self.headers is None else self.headers.part(start, stop),
            _runs_between(self.runs, start, stop),
        )

    def from_offset(self, offset: int) -> "RecordColumns":
        """The records from this offset on: a fetched batch may begin before what was asked for."""
        if not len(self) or self.offsets[0] >= offset:
            return self
        # The offsets of a batch grow, and so do those of one batch after another.
        first = int(np.count_nonzero(self.offsets < offset))
        return self.part(first, len(self))


def _runs_between(runs: tuple[BatchRun, ...], start: int, stop: int) -> tuple[BatchRun, ...]:
    kept = []
    first = 0
    for run in runs:
        last = first + run.record_count
        count = min(last, stop) - max(first, start)
        if count > 0:
            kept.append(run._replace(record_count=count))
        first = last
    return tuple(kept)


def columns_from_records(
    records: Sequence[Record], runs: tuple[BatchRun, ...], batch_count: int
) -> RecordColumns:
    """The columns of records whose keys, values and headers are laid out in bytes of their own."""
    layout = _Layout()
    key_starts, key_sizes = layout.add([record.key for record in records])
    value_starts, value_sizes = layout.add([record.value for record in records])
    headers = None
    if any(record.headers for record in records):
        flat = list(chain.from_iterable([record.headers for record in records]))
        firsts = accumulate([len(record.headers) for record in records], initial=0)
        headers = HeaderColumns(
            np.array(list(firsts), np.int64),
            *layout.add([key.encode("utf-8", "surrogateescape") for key, _ in flat]),
            *layout.add([value for _, value in flat]),
        )
    return RecordColumns(
        b"".join(layout.pieces),
        np.array([record.offset for record in records], np.int64),
        np.array([record.timestamp for record in records], np.int64),
        key_starts,
        key_sizes,
        value_starts,
        value_sizes,
        headers,
        runs,
        batch_count,
    )


class _Layout:
    """Fields one after the other."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._size_bytes = 0

    def add(self, fields: list[bytes | None]) -> tuple[Longs, Longs]:
        """Where each field begins, and its size, -1 for null."""
        pieces = [b"" if field is None else field for field in fields]
        bounds = list(accumulate(map(len, pieces), initial=self._size_bytes))
        self._size_bytes = bounds.pop()
        self.pieces += pieces
        sizes = [-1 if field is None else len(field) for field in fields]
        return np.array(bounds, np.int64), np.array(sizes, np.int64)
