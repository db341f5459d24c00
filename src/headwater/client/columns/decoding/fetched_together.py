"""The partitions of one answer decoded together, as if their batches were those of one partition.

A partition's share of an answer is a megabyte, in which there are only a thousand records of a
kilobyte: decoding it is mostly the fixed cost of array operations. The shares lie in one buffer, so
the batches of several are read at once, and each gets its part of the columns. Those parts have
their bytes in common, and Arrow copies the fields of all of them in one go.

Only the usual case is worth it: where there is anything unusual, or enough in each partition, each
is decoded alone by `decode_fetched`, which knows all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from headwater.client.columns.decoding.batch_table import read_batch_table
from headwater.client.columns.decoding.decoded_columns import RecordColumns
from headwater.client.columns.decoding.fetched_columns import (
    GROUP_BYTES,
    GROUP_RECORDS,
    FoundBatches,
    read_found,
)
from headwater.client.columns.varint_arrays import Bytes
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.wire.records.batch_header import CONTROL_BIT


class FetchedTogether:
    """Decoded when the first of them is asked for. Of one thread at a time."""

    def __init__(self, fetches: Sequence[FetchedPartition], *, check_crc: bool = True) -> None:
        self._groups = _groups(fetches)
        self._check_crc = check_crc
        #: What was decoded and nobody has asked for yet.
        self._decoded: dict[FetchedPartition, RecordColumns] = {}

    def take(self, fetched: FetchedPartition) -> RecordColumns | None:
        """All records from the offset on that was asked for; None if it is to be decoded alone."""
        for group in self._groups:
            if fetched in group:
                self._groups.remove(group)
                self._decoded |= decode_together(group, check_crc=self._check_crc)
                break
        return self._decoded.pop(fetched, None)


def _groups(fetches: Sequence[FetchedPartition]) -> list[list[FetchedPartition]]:
    """Neighbours in one buffer, as many as are worth it."""
    groups: list[list[FetchedPartition]] = [[]]
    size_bytes = 0
    for fetched in fetches:
        if not fetched.has_batches:
            continue
        size_bytes += fetched.size_bytes
        if size_bytes > GROUP_BYTES:
            groups.append([])
            size_bytes = fetched.size_bytes
        groups[-1].append(fetched)
    return [group for group in groups if len(group) > 1]


def decode_together(
    fetches: Sequence[FetchedPartition], *, check_crc: bool = True
) -> dict[FetchedPartition, RecordColumns]:
    """The records of each, which may be none; nothing at all if something is unusual."""
    views = [memoryview(fetched.buffer) for fetched in fetches]
    frame = views[0].obj
    if any(view.obj is not frame for view in views) or any(each.has_aborted for each in fetches):
        return {}
    whole = memoryview(frame)
    array: Bytes = np.frombuffer(whole, np.uint8)
    places = [_address(np.frombuffer(view, np.uint8)) - _address(array) for view in views]
    batch_counts = [len(fetched.batch_ends) for fetched in fetches]
    owners = np.repeat(np.arange(len(fetches)), batch_counts)
    ends = np.concatenate([np.array(fetched.batch_ends, np.int64) for fetched in fetches])
    ends += np.array(places, np.int64)[owners]
    begins = np.empty_like(ends)
    begins[1:] = ends[:-1]
    firsts = np.cumsum([0, *batch_counts[:-1]])
    begins[firsts] = places
    table = read_batch_table(array, begins, ends - begins)
    if table is None or table.record_counts.sum() > GROUP_RECORDS:
        return {}
    is_data = table.attributes & CONTROL_BIT == 0
    chosen = np.flatnonzero(is_data)
    columns = read_found(whole, FoundBatches(begins, ends, table).rows(chosen), check_crc)
    if columns is None or columns.batch_count < len(chosen):
        return {}
    record_counts = np.bincount(owners, table.record_counts * is_data, len(fetches))
    bounds = [0, *np.cumsum(record_counts).astype(np.int64).tolist()]
    return {
        fetched: columns.part(first, last).from_offset(fetched.fetch_offset)
        for fetched, (first, last) in zip(fetches, pairwise(bounds), strict=True)
    }


def _address(array: Bytes) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
