"""Batch headers for tests that need no batch: only what producer state looks at is filled in."""

from headwater.storage.producers.entry import AppendedBatch
from headwater.wire.records import BatchHeader, ControlType, EndTransactionMarker

TRANSACTIONAL = 0x10
CONTROL = 0x20


def data_header(
    *,
    producer_id: int = 1,
    epoch: int = 0,
    sequence: int = 0,
    offset: int = 0,
    count: int = 1,
    timestamp: int = 1_000,
    transactional: bool = False,
    attributes: int = 0,
) -> BatchHeader:
    """A batch of `count` records at `offset`, as its producer numbered it."""
    return BatchHeader(
        base_offset=offset,
        batch_length=49,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes | (TRANSACTIONAL if transactional else 0),
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def data(
    *,
    producer_id: int = 1,
    epoch: int = 0,
    sequence: int = 0,
    offset: int = 0,
    count: int = 1,
    timestamp: int = 1_000,
    transactional: bool = False,
) -> AppendedBatch:
    return AppendedBatch(
        data_header(
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            offset=offset,
            count=count,
            timestamp=timestamp,
            transactional=transactional,
        )
    )


def marker(
    *,
    producer_id: int = 1,
    epoch: int = 0,
    offset: int = 0,
    timestamp: int = 1_000,
    commit: bool = False,
    coordinator_epoch: int = 0,
) -> AppendedBatch:
    """A transaction marker, which takes one offset and has no sequence number."""
    header = data_header(
        producer_id=producer_id,
        epoch=epoch,
        sequence=-1,
        offset=offset,
        timestamp=timestamp,
        transactional=True,
        attributes=CONTROL,
    )
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return AppendedBatch(header, EndTransactionMarker(kind, coordinator_epoch))
