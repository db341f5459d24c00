"""The times that senders wrote into `headwater-audit`, for topics with `audit.time=header`.

A batch has one time for its bucket, the largest of its records'; here it is the largest of those in
their audit ids, where they have one. So a topic whose records have the time of their append is
audited by the time at which they were sent, and it is known how late they came. Records are looked
at for nothing else, and only in such topics. A batch that cannot be read, or is larger than the
topic allows when it is decompressed, keeps the time of its header.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.audit_id import audit_id_of
from headwater.base.errors import KafkaError
from headwater.wire.records import BatchHeader, decode_records
from headwater.wire.records.batch_header import CONTROL_BIT, TIMESTAMP_TYPE_BIT


def with_header_times(
    batches: Sequence[tuple[memoryview, BatchHeader]], decompressed_bytes_max: int
) -> list[BatchHeader]:
    """The headers with the times of ids in place of those of records; in any thread."""
    return [_with_id_times(data, header, decompressed_bytes_max) for data, header in batches]


def _with_id_times(data: memoryview, header: BatchHeader, bytes_max: int) -> BatchHeader:
    if header.attributes & CONTROL_BIT:
        return header
    try:
        times = [
            audit_id.time_ms
            for record in decode_records(data, max_decompressed_bytes=bytes_max, check_crc=False)
            if (audit_id := audit_id_of(record.headers)) is not None
        ]
    except KafkaError:
        return header
    if not times:
        return header
    return header._replace(
        base_timestamp=min(times),
        max_timestamp=max(times),
        # It is a time of sending, whatever the records' own are.
        attributes=header.attributes & ~TIMESTAMP_TYPE_BIT,
    )
