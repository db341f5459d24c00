"""Batches as they are fetched, and their records as the plainest of readers has them."""

from __future__ import annotations

from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.fetch.corrupt_batches import check_offsets_grow
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.wire.records import (
    MAGIC_V1,
    Compression,
    ControlType,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    encode_end_transaction_marker,
    encode_legacy,
)
from tests.support.values.record_strategies import compressions, nullable_bytes, timestamp_types

PARTITION = TopicPartition("orders", 2)


def marker(kind: ControlType, producer_id: int, offset: int) -> bytes:
    return encode_end_transaction_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=5,
        timestamp_ms=1_000,
        base_offset=offset,
    )


@st.composite
def batch_lists(draw: st.DrawFn) -> list[bytes]:
    """Batches with growing offsets, many of them alike, now and then one of another kind."""
    batches: list[bytes] = []
    offset = draw(st.integers(0, 40))
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(("plain", "plain", "plain", "plain", "marker", "old")))
        if kind == "marker":
            batches.append(marker(ControlType.COMMIT, 9, offset))
            offset += 1
            continue
        count = draw(st.sampled_from((1, 5, 5, 5, 70)))
        values = draw(st.lists(nullable_bytes, min_size=1, max_size=3))
        headers = draw(st.sampled_from(((), (), (("h", b"x"), ("", None)))))
        records = [
            Record(offset + index, 1_000 + index // 3, None, values[index % len(values)], headers)
            for index in range(count)
        ]
        if kind == "old":
            plain = [record._replace(headers=()) for record in records]
            batches.append(encode_legacy(plain, magic=MAGIC_V1))
        else:
            batches.append(
                encode_batch(
                    records,
                    compression=draw(st.just(Compression.NONE) | compressions),
                    timestamp_type=draw(st.just(TimestampType.CREATE_TIME) | timestamp_types),
                    leader_epoch=draw(st.sampled_from((4, 4, 5))),
                )
            )
        offset += count + draw(st.sampled_from((0, 0, 3)))
    return batches


def read_plainly(fetched: FetchedPartition, start: int) -> list[ConsumerRecord]:
    """Batch by batch and record by record; what is good before a damage, which is then raised."""
    found: list[ConsumerRecord] = []
    for begin, _, header in fetched.visible_batches():
        kind = TimestampType.CREATE_TIME if header is None else header.timestamp_type
        epoch = -1 if header is None else header.leader_epoch
        records = decode_batch(fetched.buffer, begin)
        if header is not None:
            check_offsets_grow(records)
        found += [
            ConsumerRecord(*PARTITION, offset, timestamp, kind, key, value, headers, epoch)
            for offset, timestamp, key, value, headers in records
            if offset >= start
        ]
    return found
