"""How large a row of an Arrow batch is as a record, before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headwater.base.reused_memory import Kept, ReusedMemory
from headwater.client.columns.encoding.arrow_encoder import encode_arrow
from headwater.wire.records.batch_header import HEADER_SIZE
from headwater.wire.records.compression import Compression, compress

if TYPE_CHECKING:
    import pyarrow

_NO_LIMIT: Final = 2**31 - 1


class RowSize(NamedTuple):
    #: What a producer holds against `max.request.size`.
    record_bytes: int
    #: Alone in a batch, as compressed as it would be: what a topic's `max.message.bytes` bounds.
    batch_bytes: int


def row_size(row: pyarrow.RecordBatch, compression: Compression, level: int | None) -> RowSize:
    """The size of the only row of a batch that `send_arrow` could take."""
    [found] = encode_arrow(
        row,
        partition=0,
        partition_count=1,
        choose_partition=int,
        section_bytes_max=_NO_LIMIT,
        now_ms=0,
        memory=ReusedMemory(Kept(0, 0)),
    )
    data = found.section.data
    packed = data if compression is Compression.NONE else compress(compression, data, level)
    return RowSize(len(data), HEADER_SIZE + len(packed))
