"""The headers of many batches as columns: what is asked of every batch is asked of all at once.

A producer of large records puts few into a batch, so that looking at each batch alone costs more
than reading its records. The table is read from the bytes of a fetch, in which batches follow one
another, or made of headers that somebody has read one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from headwater.client.columns.decoding.decoded_columns import BatchRun
from headwater.client.columns.varint_arrays import Bytes, Longs
from headwater.wire.records import HEADER_SIZE, LOG_OVERHEAD, MAGIC_V2, BatchHeader, TimestampType
from headwater.wire.records.batch_header import RECORD_SIZE_MIN, TIMESTAMP_TYPE_BIT

_HEADER_TYPE: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
_WIDE_TYPE: Final = np.dtype([(name, np.int64) for name in BatchHeader._fields])
_HEADER_BYTES: Final = np.arange(HEADER_SIZE)
_COMPRESSION_BITS: Final = 0x07
_OFFSET_MAX: Final = 2**63 - 1


class BatchTable(NamedTuple):
    """Row i of every array is batch i."""

    base_offsets: Longs
    leader_epochs: Longs
    crcs: Longs
    attributes: Longs
    last_offset_deltas: Longs
    base_timestamps: Longs
    max_timestamps: Longs
    record_counts: Longs

    def __len__(self) -> int:
        return len(self.base_offsets)

    @property
    def compressions(self) -> Longs:
        """The codes of the codecs, which may name none."""
        return self.attributes & _COMPRESSION_BITS

    def rows(self, chosen: slice | Longs) -> BatchTable:
        return BatchTable(*[column[chosen] for column in self])

    def runs(self) -> tuple[BatchRun, ...]:
        """What records have in common, for as many of them as have it in common."""
        kinds = self.attributes & TIMESTAMP_TYPE_BIT
        is_new = np.ones(len(kinds), np.bool_)
        is_new[1:] = (kinds[1:] != kinds[:-1]) | (self.leader_epochs[1:] != self.leader_epochs[:-1])
        firsts = np.flatnonzero(is_new)
        counts = np.add.reduceat(self.record_counts, firsts) if len(firsts) else firsts
        return tuple(
            BatchRun(
                count,
                TimestampType.LOG_APPEND_TIME if kind else TimestampType.CREATE_TIME,
                epoch,
            )
            for count, kind, epoch in zip(
                counts.tolist(),
                kinds[firsts].tolist(),
                self.leader_epochs[firsts].tolist(),
                strict=True,
            )
            if count
        )

    def are_sound(self, sizes: Longs) -> bool:
        """Whether each batch, of that size, is what `validate_batch` accepts but for its checksum.

        The records of compressed ones must be looked at once they are decompressed.
        """
        spans = self.last_offset_deltas + 1
        section_bytes = sizes - HEADER_SIZE
        needed_bytes = self.record_counts * RECORD_SIZE_MIN
        counts = self.record_counts
        is_plain = self.compressions == 0
        fits = np.where(
            is_plain,
            (section_bytes >= needed_bytes) & ((counts > 0) | (section_bytes == 0)),
            (section_bytes > 0) | (counts == 0),
        )
        is_sound = (spans > 0) & (self.base_offsets >= 0) & (counts >= 0) & (counts <= spans) & fits
        is_sound &= self.base_offsets <= _OFFSET_MAX - np.maximum(spans, 0)
        return bool(is_sound.all())


def table_of_headers(headers: Sequence[BatchHeader]) -> BatchTable:
    return _of_numbers(np.array(headers, np.int64).reshape(-1, len(BatchHeader._fields)).T)


def read_batch_table(array: Bytes, begins: Longs, sizes: Longs) -> BatchTable | None:
    """The headers at these places; None if one of the batches is old or too short for a header."""
    if len(sizes) and sizes.min() < HEADER_SIZE:
        return None
    rows = array[begins[:, None] + _HEADER_BYTES].view(_HEADER_TYPE).ravel()
    if (rows["magic"] != MAGIC_V2).any() or (rows["length"] + LOG_OVERHEAD != sizes).any():
        return None
    # All fields in one go, each as wide as the widest.
    return _of_numbers(
        rows.astype(_WIDE_TYPE).view(np.int64).reshape(-1, len(BatchHeader._fields)).T
    )


def _of_numbers(numbers: Longs) -> BatchTable:
    """From a row of numbers for each field of a header."""
    return BatchTable(
        base_offsets=numbers[0],
        leader_epochs=numbers[2],
        crcs=numbers[4],
        attributes=numbers[5],
        last_offset_deltas=numbers[6],
        base_timestamps=numbers[7],
        max_timestamps=numbers[8],
        record_counts=numbers[12],
    )
