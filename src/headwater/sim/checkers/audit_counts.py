"""The audit tells what is stored: each record once, in the bucket of its batch's largest time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from headwater.audit.rows import Row
from headwater.audit.topic_book import make_book
from headwater.base.durations import LONG_MAX
from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import PropertyViolated
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import decode_batch, iter_batch_headers

_READ_BYTES = 1 << 20


def check_audit_counts(
    rows: Iterable[Row], logs: dict[TopicPartition, PartitionLog], bucket_ms: int
) -> None:
    """Compare what rows tell of partitions with what their leaders' logs hold."""
    by_partition: dict[TopicPartition, list[Row]] = {each: [] for each in logs}
    for row in rows:
        by_partition.get(TopicPartition(row["topic"], row["partition"]), []).append(row)
    for partition, log in logs.items():
        book = make_book(
            partition.topic, by_partition[partition], from_ms=0, to_ms=LONG_MAX, now_ms=0
        )
        told = Counter({each.start_ms: each.stored_count for each in book.buckets})
        stored = _stored(log, bucket_ms)
        if stored != told:
            raise PropertyViolated(
                f"the audit tells what is stored: {partition} holds {dict(stored)} by bucket, and "
                f"told are {dict(told)}, lost {book.lost_count}"
            )


def _stored(log: PartitionLog, bucket_ms: int) -> Counter[int]:
    """From the records themselves, not from headers."""
    stored: Counter[int] = Counter()
    offset = log.log_start_offset
    while offset < log.high_watermark:
        region = log.read(offset, _READ_BYTES, min_one_batch=True).region
        if region is None:
            break
        data = memoryview(region.read())
        for position, header in iter_batch_headers(data):
            offset = header.next_offset
            if not header.is_control:
                records = decode_batch(data[position : position + header.size_bytes])
                latest_ms = max(record.timestamp for record in records)
                stored[latest_ms // bucket_ms * bucket_ms] += len(records)
    return stored
