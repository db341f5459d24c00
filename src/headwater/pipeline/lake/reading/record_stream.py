"""The archived records of one topic partition in order of offsets, with little of them in memory.

A file has its records in order, but files overlap where timestamps do not grow with offsets, since
a file has one date. So files are merged: of all that are begun the next rows are at hand, and what
is not after the last row at hand of any of them is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.table.data_file import DataFile

BATCH_ROWS = 16_384


def records_in_order(
    reader: TableReader, files: Iterable[DataFile], *, from_offset: int = 0
) -> Iterator[pa.Table]:
    """Records from an offset on, of files of one topic partition; the reader has `offset`."""
    waiting = sorted(
        (file for file in files if _span(file).last_offset >= from_offset),
        key=lambda file: _span(file).first_offset,
        reverse=True,
    )
    begun: list[_Begun] = []
    while waiting or begun:
        if not begun:
            begun.append(_Begun(reader, waiting.pop()))
        limit = min((each.last for each in begun), default=-1)
        if waiting and _span(waiting[-1]).first_offset <= limit:
            begun.append(_Begun(reader, waiting.pop()))
            continue
        parts = [each.take_until(limit) for each in begun]
        begun = [each for each in begun if not each.is_done]
        parts = [part for part in parts if len(part)]
        if not parts:
            continue
        rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts).sort_by("offset")
        offsets = rows.column("offset").to_numpy()
        if len(offsets) and offsets[0] < from_offset:
            rows = rows.slice(int(np.searchsorted(offsets, from_offset)))
        if len(rows):
            yield rows


class _Begun:
    """A file of which some rows are at hand."""

    def __init__(self, reader: TableReader, file: DataFile) -> None:
        self._batches = reader.batches(file, BATCH_ROWS)
        self._empty = reader.schema.empty_table()
        self._rows = self._empty
        self._offsets: Any = np.zeros(0, np.int64)
        self.is_done = False
        self.last = -1
        self._fill()

    def take_until(self, limit: int) -> pa.Table:
        """The rows at hand up to an offset."""
        count = int(np.searchsorted(self._offsets, limit, side="right"))
        taken = self._rows.slice(0, count)
        self._rows, self._offsets = self._rows.slice(count), self._offsets[count:]
        self._fill()
        return taken

    def _fill(self) -> None:
        while not self.is_done and len(self._rows) == 0:
            rows = next(self._batches, None)
            if rows is None:
                self.is_done = True
            else:
                self._rows, self._offsets = rows, rows.column("offset").to_numpy()
                self.last = int(self._offsets[-1]) if len(rows) else self.last


def _span(file: DataFile) -> Any:
    return file.records
