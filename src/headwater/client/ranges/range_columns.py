"""The records of one fetch that belong to a range, as columns.

A fetch may begin before the range and end after it: what is outside is cut off before anything is
copied. Control batches and those of aborted transactions do not appear.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headwater.client.columns.decoding.fetched_columns import decode_fetched
from headwater.client.columns.decoding.record_columns import RecordColumns
from headwater.client.corrupt_batches import CorruptBatches
from headwater.client.fetched_partition import FetchedPartition


def fetched_columns(
    fetched: FetchedPartition,
    start: int,
    end: int,
    *,
    check_crc: bool,
    corrupt: CorruptBatches,
    with_headers: bool = True,
) -> Iterator[RecordColumns]:
    """The records with offsets from `start` to before `end`; pieces without any are left out."""
    groups = decode_fetched(
        fetched, start, check_crc=check_crc, with_headers=with_headers, corrupt=corrupt
    )
    for columns in groups:
        if columns.offsets[-1] < end:
            yield columns
            continue
        count = int(np.searchsorted(columns.offsets, end))
        if count:
            yield columns.part(0, count)
        return
