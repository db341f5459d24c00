"""The append that nearly all are: one ordinary batch, which goes behind the last as it came.

Of a batch that is not compressed anew, not decompressed, not part of a transaction, in sequence and
in the leader's running epoch and segment, an append has little to find out. All of it is asked here
in one go, in place of the many small steps that `PartitionLog.append_as_leader` takes for batches
of any kind; so is whether uncompressed records are what the header says of them, see `record_walk`.
Whatever is not ordinary, wrong batches among them, is left untouched to that one, which knows what
to say; so there is one place where a batch is refused, and this is not it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from headwater.storage.append.leader import WALKED_INLINE_RECORDS_MAX
from headwater.storage.errors import LogStorageError
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
)
from headwater.wire.records.batch_header import (
    ATTRIBUTES_POSITION,
    HEADER_STRUCT,
    RECORD_SIZE_MIN,
)
from headwater.wire.records.record_walk import walk_records

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog

_unpack_header = HEADER_STRUCT.unpack_from
_pack_long_into = struct.Struct(">q").pack_into
_pack_int_into = struct.Struct(">i").pack_into
_new_tuple = tuple.__new__

#: Attributes of a batch that say nothing but how it is compressed.
_ATTRIBUTES_MAX: Final = int(max(Compression))


def append_plain_batch(
    log: PartitionLog, data: memoryview, leader_epoch: int, now_ms: int
) -> int | None:
    """Write one ordinary batch and return its offset; None, and nothing done, if it is not one.

    `data` is written to. Raises `LogStorageError` if the disk does not take it.
    """
    config = log.config
    size = len(data)
    if (
        not config.stores_batches_as_they_come
        or not HEADER_SIZE < size <= config.max_message_bytes
        or log.failure is not None
        or log.unwritten.first_sequences
        or not log.leader_epochs.is_running(leader_epoch)
        or data.readonly
    ):
        return None
    fields = _unpack_header(data)
    (
        producer_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = fields
    if (
        producer_offset != 0
        or length != size - LOG_OVERHEAD
        or magic != MAGIC_V2
        or not 0 <= attributes <= _ATTRIBUTES_MAX
        or count <= 0
        or last_offset_delta != count - 1
        or (attributes == 0 and size - HEADER_SIZE < count * RECORD_SIZE_MIN)
        or max_timestamp - now_ms > config.message_timestamp_after_max_ms
    ):
        return None
    states = log.producer_states
    entry = None
    if producer_id >= 0:
        entry = states.in_sequence(producer_id, producer_epoch, base_sequence, last_offset_delta)
        if entry is None:
            return None
    offset = log.log_end_offset
    segment = log.segments.active
    if (
        segment.should_roll(size, offset + last_offset_delta, max_timestamp, now_ms, config)
        or crc32c(data[ATTRIBUTES_POSITION:]) != crc
    ):
        return None
    if attributes == 0 and config.walks_records:
        if count > WALKED_INLINE_RECORDS_MAX or not walk_records(
            data, HEADER_SIZE, count, base_timestamp, max_timestamp
        ):
            return None
    elif (
        max_timestamp < base_timestamp
        or (max_timestamp <= 0 and max_timestamp != NO_TIMESTAMP)
        or (attributes != 0 and config.walks_compressed_records)
    ):
        return None
    _pack_long_into(data, 0, offset)
    _pack_int_into(data, LOG_OVERHEAD, leader_epoch)
    header: BatchHeader = _new_tuple(BatchHeader, (offset, length, leader_epoch, *fields[3:]))
    try:
        log.write_to(segment, data, (header,))
    except LogStorageError:
        log.unwritten.refused((header,), states)
        raise
    if entry is not None:
        states.follow(entry, header)
    states.end_offset = offset + count
    return offset
