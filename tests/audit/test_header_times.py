"""`audit.time=header`: topics with the time of the append, audited by the time of sending."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headwater.audit.header_times import with_header_times
from headwater.base.audit_id import AUDIT_HEADER, AuditId
from headwater.wire.records import (
    Compression,
    Header,
    Record,
    TimestampType,
    encode_batch,
)
from headwater.wire.records.batch_header import read_batch_header
from tests.support.audit.audit_rows import led_rows
from tests.support.brokers.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker

MINUTE_MS = 60_000
#: Long ago: nobody could take it for the time of the append.
SENT_MS = BASE_TIMESTAMP - 100 * MINUTE_MS


def batch_of(*times_ms: int | None, compression: Compression = Compression.NONE) -> bytes:
    """A record each; those with a time have an id."""
    records = []
    for number, time_ms in enumerate(times_ms):
        headers: tuple[Header, ...] = ()
        if time_ms is not None:
            headers = ((AUDIT_HEADER, AuditId(1, 0, number, time_ms).encode()),)
        records.append(Record(number, BASE_TIMESTAMP, b"k", b"v" * 100, headers))
    return bytes(encode_batch(records, compression=compression))


async def counted(broker: HandlerBroker, topic: str) -> Mapping[int, int]:
    publisher = broker.context.audit_publisher
    publisher.look()
    await publisher.publish_all()
    assert publisher.failed_rounds == 0
    found: dict[int, int] = {}
    for row in led_rows(broker.context.partitions):
        if row["tier"] == "broker" and row["topic"] == topic:
            start = row["time_bucket_start"]
            found[start] = found.get(start, 0) + row["count"]
    return found


def bucket(time_ms: int) -> int:
    return time_ms // MINUTE_MS * MINUTE_MS


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_a_log_append_time_topic_is_audited_by_the_time_of_sending(
    tmp_path: Path, compression: Compression
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        configs = {"message.timestamp.type": "LogAppendTime", "audit.time": "header"}
        await broker.create_topic("orders", configs=configs)
        batches = [
            batch_of(SENT_MS, SENT_MS + 5, compression=compression),
            batch_of(SENT_MS + MINUTE_MS, SENT_MS, compression=compression),
        ]
        for batch in batches:
            broker.context.partitions.get("orders", 0).append(
                bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP
            )
        found = await counted(broker, "orders")
        assert found == {bucket(SENT_MS): 2, bucket(SENT_MS + MINUTE_MS): 2}
        assert await counted(broker, "orders") == found, "nothing is counted twice"
        rows = [row for row in led_rows(broker.context.partitions) if row["topic"] == "orders"]
        assert {row.get("timestamp_type", "CreateTime") for row in rows} == {"CreateTime"}

    run_with_broker(tmp_path, scenario)


def test_batches_without_ids_keep_their_time() -> None:
    batch = memoryview(batch_of(None, None))
    header = read_batch_header(batch)
    assert with_header_times([(batch, header)], 1 << 20) == [header]


def test_the_largest_id_counts_where_only_some_records_have_one() -> None:
    batch = memoryview(batch_of(SENT_MS, None, SENT_MS + 7))
    found = with_header_times([(batch, read_batch_header(batch))], 1 << 20)[0]
    assert (found.base_timestamp, found.max_timestamp) == (SENT_MS, SENT_MS + 7)
    assert found.timestamp_type is TimestampType.CREATE_TIME


def test_what_is_too_large_when_decompressed_keeps_its_time() -> None:
    batch = memoryview(batch_of(*[SENT_MS] * 50, compression=Compression.GZIP))
    header = read_batch_header(batch)
    assert with_header_times([(batch, header)], 100) == [header]
    assert with_header_times([(batch, header)], 1 << 20)[0].max_timestamp == SENT_MS
