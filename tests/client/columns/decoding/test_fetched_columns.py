"""A fetch read in one go has the records that reading it batch by batch gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.client.columns.decoding import fetched_columns
from headwater.client.columns.decoding.consumer_records import columns_to_records
from headwater.client.columns.decoding.fetched_columns import decode_fetched
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.fetch.corrupt_batches import CorruptBatchError
from headwater.client.fetch.fetched_partition import AbortedRange, FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.wire.records import (
    HEADER_SIZE,
    ControlType,
    Record,
    encode_batch,
)
from headwater.wire.records.batch_header import write_crc
from tests.support.tiers import rounds
from tests.support.values.fetched_batches import PARTITION, batch_lists, marker, read_plainly


@pytest.fixture(autouse=True, scope="module")
def short_ways_for_few_records_too() -> Iterator[None]:
    """Small examples are good examples, so they should not avoid what is tested."""
    with pytest.MonkeyPatch.context() as patcher:
        patcher.setattr(fetched_columns, "ARRAY_RECORDS_MIN", 1)
        yield


def read_together(fetched: FetchedPartition, start: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    for columns in decode_fetched(fetched, start):
        assert len(columns)
        found += columns_to_records(*PARTITION, columns)
    return found


@settings(max_examples=rounds(60, 1500), deadline=None)
@given(batch_lists(), st.integers(0, 120), st.sampled_from((1, 20, 1 << 15)))
def test_has_what_reading_batch_by_batch_has(
    batches: list[bytes], start: int, group_records: int
) -> None:
    fetched = FetchedPartition(PARTITION, start, b"".join(batches))
    with pytest.MonkeyPatch.context() as patcher:
        patcher.setattr(fetched_columns, "GROUP_RECORDS", group_records)
        assert read_together(fetched, start) == read_plainly(fetched, start)


@settings(max_examples=rounds(60, 1500), deadline=None)
@given(
    batch_lists(),
    st.integers(0, 5_000),
    st.integers(0, 255),
    st.booleans(),
)
def test_damage_is_told_as_the_plain_reader_tells_it(
    batches: list[bytes], position: int, byte: int, is_crc_right: bool
) -> None:
    plain = [index for index, batch in enumerate(batches) if batch[16] == 2]
    if not plain:
        return
    chosen = plain[position % len(plain)]
    damaged = bytearray(batches[chosen])
    # The length is what leads to the next batch, so it is left as it is.
    damaged[21 + position % (len(damaged) - 21)] = byte
    if is_crc_right:
        write_crc(damaged, 0, len(damaged))
    batches[chosen] = bytes(damaged)
    fetched = FetchedPartition(PARTITION, 0, b"".join(batches))
    assert outcome(read_together, fetched) == outcome(read_plainly, fetched)


def outcome(read: object, fetched: FetchedPartition) -> object:
    try:
        return read(fetched, 0)  # type: ignore[operator]
    except KafkaError as error:
        return type(error.__cause__ if isinstance(error, CorruptBatchError) else error)


def test_good_records_come_before_the_error() -> None:
    good = [
        encode_batch([Record(start + index, 5, None, b"v") for index in range(100)])
        for start in (0, 100, 200)
    ]
    bad = bytearray(good[1])
    bad[-1] ^= 1
    fetched = FetchedPartition(PARTITION, 0, good[0] + bytes(bad) + good[2])
    reading = decode_fetched(fetched, 0)
    assert next(reading).offsets.tolist() == list(range(100))
    with pytest.raises(KafkaError):
        next(reading)


def test_aborted_records_are_left_out() -> None:
    def transaction(producer_id: int, first: int, kind: ControlType) -> bytes:
        records = [Record(first + index, 5, None, b"%d" % index) for index in range(3)]
        encoded = encode_batch(
            records, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
        return encoded + marker(kind, producer_id, first + 3)

    data = (
        transaction(1, 0, ControlType.ABORT)
        + transaction(2, 4, ControlType.COMMIT)
        + transaction(1, 8, ControlType.COMMIT)
    )
    fetched = FetchedPartition(
        PARTITION,
        0,
        data,
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted=[AbortedRange(0, 1)],
    )
    assert [record.offset for record in read_together(fetched, 0)] == [4, 5, 6, 8, 9, 10]
    assert [record.offset for record in read_together(fetched, 5)] == [5, 6, 8, 9, 10]


def test_the_records_of_plain_batches_are_not_copied() -> None:
    data = bytearray(
        b"".join(
            encode_batch([Record(start + index, 5, None, b"value") for index in range(80)])
            for start in (0, 80)
        )
    )
    [columns] = decode_fetched(FetchedPartition(PARTITION, 0, memoryview(data)), 0)
    assert isinstance(columns.data, memoryview)
    assert columns.data.obj is data
    assert len(columns.data) == len(data) - HEADER_SIZE
    assert len(columns.runs) == 1
    assert columns.batch_count == 2


def test_without_headers_they_are_not_read() -> None:
    records = [Record(index, 5, b"k", b"v", (("h", b"x"),)) for index in range(100)]
    fetched = FetchedPartition(PARTITION, 0, encode_batch(records))
    [with_headers] = decode_fetched(fetched, 0)
    [without] = decode_fetched(fetched, 0, with_headers=False)
    assert with_headers.headers is not None
    assert without.headers is None
    assert without.offsets.tolist() == with_headers.offsets.tolist()
    assert without.value_starts.tolist() == with_headers.value_starts.tolist()
