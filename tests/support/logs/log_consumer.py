"""What a consumer makes of a log: batch after batch, all of it or committed data only."""

from __future__ import annotations

from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import (
    BatchHeader,
    ControlType,
    Record,
    decode_batch,
    read_batch_header,
    read_control_type,
)


def read_batches(log: PartitionLog, offset: int) -> list[tuple[BatchHeader, list[Record]]]:
    """All batches from the one that holds `offset` on, fetched one by one.

    Of control batches no records are given.
    """
    found = []
    while offset < log.log_end_offset:
        data = _batch_at(log, offset)
        if data is None:
            break
        header = read_batch_header(data)
        assert header.last_offset >= offset, f"{header} was read for {offset}"
        records = [] if header.is_control else decode_batch(data)
        found.append((header, [record for record in records if record.offset >= offset]))
        offset = header.next_offset
    return found


def read_committed(log: PartitionLog, offset: int) -> list[Record]:
    """What a consumer with `isolation.level=read_committed` hands to its application."""
    upper = log.last_stable_offset
    aborted = sorted(log.aborted_transactions(offset, upper), key=lambda each: each.first_offset)
    under_way: set[int] = set()
    found = []
    for header, records in read_batches(log, offset):
        if header.base_offset >= upper:
            break
        while aborted and aborted[0].first_offset <= header.last_offset:
            under_way.add(aborted.pop(0).producer_id)
        if header.is_control:
            if _is_abort(log, header):
                under_way.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in under_way):
            found += records
    return found


def _batch_at(log: PartitionLog, offset: int) -> bytes | None:
    region = log.read(offset, 1, min_one_batch=True).region
    return None if region is None else region.read()


def _is_abort(log: PartitionLog, header: BatchHeader) -> bool:
    data = _batch_at(log, header.base_offset)
    assert data is not None
    records = decode_batch(data)
    return bool(records) and read_control_type(records[0]) is ControlType.ABORT
