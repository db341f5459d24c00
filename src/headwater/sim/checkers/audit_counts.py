"""The audit tells what is stored: each record once, in the bucket of its batch's largest time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from headwater.audit.rows import BROKER_TIER, Row
from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import PropertyViolated
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import decode_batch, iter_batch_headers

_READ_BYTES = 1 << 20


def check_audit_counts(
    rows: Iterable[Row], logs: dict[TopicPartition, PartitionLog], bucket_ms: int
) -> None:
    """Compare what rows tell of partitions with what their leaders' logs hold."""
    told: dict[TopicPartition, Counter[int]] = {each: Counter() for each in logs}
    for row in rows:
        partition = TopicPartition(row["topic"], row["partition"])
        if row["tier"] == BROKER_TIER and partition in told:
            told[partition][row["time_bucket_start"]] += row["count"]
    for partition, log in logs.items():
        stored = _stored(log, bucket_ms)
        if stored != told[partition]:
            raise PropertyViolated(
                f"the audit tells what is stored: {partition} holds {dict(stored)} by bucket, and "
                f"told are {dict(told[partition])}"
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
