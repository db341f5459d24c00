"""Appending a leader's batches to a follower's log.

A fetch brings batches as they stand in the leader's log, with their final offsets and epochs. The
last one may be cut short, for a leader sends bytes and does not count out batches; it comes again
with the next fetch. Each whole one is checked as the leader has checked it, but for what it allows
its producers: a follower has no say in that.

A batch from a later epoch than the one in which the leader was asked ends the walk. The leader then
lost its office while it answered, and its answer may hold something of what came after, out of
place. The follower asks again when it has heard of the election.

Nearly always all of it goes to the active segment with one write. What needs a new segment is
written batch by batch, so that segments end where the leader's do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from headwater.base.ids import TopicPartition
from headwater.storage.errors import OffsetOutOfRangeError
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    CorruptRecordError,
    read_batch_header,
    validate_batch,
)
from headwater.wire.records.batch_header import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    RECORD_SIZE_MIN,
    TRANSACTIONAL_BIT,
)

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog

_COMPRESSION_MASK: Final = 0x07
_COMPRESSION_MAX: Final = int(max(Compression))
_TRANSACTION_BITS: Final = CONTROL_BIT | TRANSACTIONAL_BIT


class FollowerBatches(NamedTuple):
    """The batches that a follower may write: the first `size_bytes` of what it got."""

    headers: list[BatchHeader]
    size_bytes: int
    max_timestamp: int
    #: Whether some belong to transactions or end them.
    has_transactions: bool


def append_batches(log: PartitionLog, data: Buffer, leader_epoch: int | None, now_ms: int) -> int:
    """Write the whole batches of `data`; returns how many bytes that are."""
    view = memoryview(data)
    headers, size, max_timestamp, has_transactions = check_follower_batches(
        view, log.log_end_offset, leader_epoch, log.partition
    )
    if not headers:
        return 0
    segment = log.segments.active
    if segment.should_roll(size, headers[-1].last_offset, max_timestamp, now_ms, log.config):
        position = 0
        for header in headers:
            end = position + header.size_bytes
            log.write(view[position:end], (header,), AppendOrigin.REPLICATION, now_ms)
            position = end
        return size
    states = log.producer_states
    pending = None if has_transactions else states.prepare_data(headers)
    if pending is None or not log.leader_epochs.is_running(headers[-1].leader_epoch):
        log.write(view[:size], headers, AppendOrigin.REPLICATION, now_ms)
    else:
        log.write_to(segment, view[:size], headers)
        states.apply(pending)
    return size


def check_follower_batches(
    data: memoryview, next_offset: int, leader_epoch: int | None, partition: TopicPartition
) -> FollowerBatches:
    """The whole batches of `data` from its start; an error if one is wrong, or none is whole."""
    headers: list[BatchHeader] = []
    all_attributes, latest_ms = 0, NO_TIMESTAMP
    position, end = 0, len(data)
    while end - position >= HEADER_SIZE:
        header = read_batch_header(data, position)
        base_offset, length, epoch, _, crc, attributes, delta, _, max_ms, _, _, _, count = header
        next_position = position + length + LOG_OVERHEAD
        if next_position > end:
            break
        if (
            crc32c(data[position + ATTRIBUTES_POSITION : next_position]) != crc
            or base_offset < 0
            or count <= 0
            or delta != count - 1
            or attributes & _COMPRESSION_MASK > _COMPRESSION_MAX
            or length - (HEADER_SIZE - LOG_OVERHEAD) < count * RECORD_SIZE_MIN
        ):
            # Compressed, or compacted, or wrong: there is one place that can tell.
            validate_batch(data, position, header)
        if leader_epoch is not None and epoch > leader_epoch:
            return FollowerBatches(
                headers, position, latest_ms, bool(all_attributes & _TRANSACTION_BITS)
            )
        if base_offset < next_offset:
            raise OffsetOutOfRangeError(
                f"{partition} ends at offset {next_offset} "
                f"and cannot take a batch at {base_offset}."
            )
        next_offset = base_offset + delta + 1
        all_attributes |= attributes
        if max_ms > latest_ms:
            latest_ms = max_ms
        headers.append(header)
        position = next_position
    if not headers and end > 0:
        raise CorruptRecordError(f"The {end} bytes for {partition} hold no whole batch.")
    return FollowerBatches(headers, position, latest_ms, bool(all_attributes & _TRANSACTION_BITS))
