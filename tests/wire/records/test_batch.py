from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    HEADER_SIZE,
    Compression,
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    Record,
    TimestampType,
    decode_batch,
    decode_records,
    encode_batch,
    encode_legacy,
    read_batch_header,
    recompress_batch,
)
from tests.support.values.record_strategies import (
    INT16,
    INT32,
    INT64,
    compressions,
    record_lists,
    timestamp_types,
)


def test_deltas_count_from_the_delete_horizon() -> None:
    batch = encode_batch([Record(0, 5000, b"k", None)], delete_horizon_ms=86_400_000)
    header = read_batch_header(batch)
    assert header.base_timestamp == header.delete_horizon_ms == 86_400_000
    assert header.max_timestamp == 5000
    assert decode_batch(batch) == [Record(0, 5000, b"k", None)]


@given(
    record_lists(),
    compressions,
    timestamp_types,
    st.tuples(INT32, INT64, INT16, INT32),
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.none() | INT64,
    st.none() | INT64,
)
def test_round_trip_of_every_field(
    records: list[Record],
    compression: Compression,
    timestamp_type: TimestampType,
    numbers: tuple[int, int, int, int],
    flags: tuple[bool, bool],
    gaps: tuple[int, int],
    delete_horizon_ms: int | None,
    max_timestamp: int | None,
) -> None:
    leader_epoch, producer_id, producer_epoch, base_sequence = numbers
    base_offset = max(0, records[0].offset - gaps[0])
    last_offset_delta = records[-1].offset - base_offset + gaps[1]
    batch = encode_batch(
        records,
        compression=compression,
        timestamp_type=timestamp_type,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=flags[0],
        control=flags[1],
        base_offset=base_offset,
        last_offset_delta=last_offset_delta,
        delete_horizon_ms=delete_horizon_ms,
        max_timestamp=max_timestamp,
    )
    header = read_batch_header(batch)
    expected_max = max(record.timestamp for record in records)
    if max_timestamp is not None:
        expected_max = max_timestamp
    first_timestamp = records[0].timestamp
    assert header == header._replace(
        base_offset=base_offset,
        batch_length=len(batch) - 12,
        leader_epoch=leader_epoch,
        magic=2,
        last_offset_delta=last_offset_delta,
        base_timestamp=first_timestamp if delete_horizon_ms is None else delete_horizon_ms,
        max_timestamp=expected_max,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        records = [record._replace(timestamp=expected_max) for record in records]
    for buffer in (batch, bytearray(batch), memoryview(batch)):
        decoded = decode_batch(buffer)
        assert decoded == records
        assert all(type(record) is Record for record in decoded)


def test_a_batch_without_records_keeps_its_offsets_and_its_producer() -> None:
    batch = encode_batch(
        [],
        base_offset=100,
        last_offset_delta=9,
        producer_id=5,
        producer_epoch=1,
        base_sequence=20,
        max_timestamp=5000,
        compression=Compression.ZSTD,
    )
    header = read_batch_header(batch)
    assert len(batch) == HEADER_SIZE
    assert (header.base_offset, header.last_offset, header.last_sequence) == (100, 109, 29)
    assert (header.base_timestamp, header.max_timestamp) == (5000, 5000)
    assert header.compression is Compression.NONE
    assert decode_batch(batch) == []
    assert list(decode_records(batch)) == []


def test_a_batch_without_records_needs_offsets() -> None:
    with pytest.raises(InvalidRecordError, match="offsets given"):
        encode_batch([], base_offset=1)
    with pytest.raises(InvalidRecordError, match="cannot span"):
        encode_batch([], base_offset=1, last_offset_delta=-1)


@pytest.mark.parametrize("offsets", [(5, 5), (5, 4), (0, 2**31)])
def test_offsets_that_no_batch_can_hold(offsets: tuple[int, int]) -> None:
    with pytest.raises(InvalidRecordError):
        encode_batch([Record(offset, 0, None, None) for offset in offsets])


def test_offsets_outside_the_given_range() -> None:
    records = [Record(5, 0, None, None), Record(8, 0, None, None)]
    with pytest.raises(InvalidRecordError, match="3 offsets after"):
        encode_batch(records, last_offset_delta=2)
    with pytest.raises(InvalidRecordError, match="does not follow"):
        encode_batch(records, base_offset=6)
    with pytest.raises(InvalidRecordError, match="cannot span"):
        encode_batch([Record(-1, 0, None, None)])


def test_a_field_that_does_not_fit() -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        encode_batch([Record(0, 0, None, None)], producer_epoch=2**15)


def test_batches_of_every_format_in_one_buffer() -> None:
    old = [Record(0, -1, b"a", b"0"), Record(1, -1, None, b"1")]
    middle = [Record(2, 50, b"b", None), Record(3, 51, b"c", b"3")]
    new = [Record(4 + number, 60, b"k", b"v") for number in range(2500)]
    data = b"".join(
        (
            encode_legacy(old, magic=0),
            encode_legacy(middle, magic=1, compression=Compression.GZIP),
            encode_batch(new, compression=Compression.LZ4),
            encode_batch([], base_offset=3000, last_offset_delta=3),
        )
    )
    assert list(decode_records(data)) == old + middle + new
    second = len(encode_legacy(old[:1], magic=0))
    assert decode_batch(data, second) == old[1:]
    third = len(encode_legacy(old, magic=0))
    assert decode_batch(data, third) == middle
    assert list(decode_records(data, start=second, end=third)) == old[1:]


def test_records_are_made_while_they_are_asked_for() -> None:
    records = [Record(number, 0, b"k", b"v") for number in range(3000)]
    stream = decode_records(encode_batch(records) + b"garbage")
    assert [next(stream) for _ in records] == records
    with pytest.raises(CorruptRecordError):
        next(stream)


def test_the_bound_on_decompression_is_the_callers() -> None:
    batch = encode_batch([Record(0, 0, None, bytes(100_000))], compression=Compression.ZSTD)
    assert decode_batch(batch, max_decompressed_bytes=110_000)[0].value == bytes(100_000)
    with pytest.raises(DecompressedTooLargeError):
        decode_batch(batch, max_decompressed_bytes=99_999)
    with pytest.raises(DecompressedTooLargeError):
        list(decode_records(batch, max_decompressed_bytes=99_999))


@given(record_lists(), compressions, compressions, st.integers(0, 3))
def test_recompression_changes_nothing_else(
    records: list[Record], before: Compression, after: Compression, position: int
) -> None:
    encode = partial(
        encode_batch, records, leader_epoch=4, producer_id=9, base_sequence=2, transactional=True
    )
    batch = encode(compression=before)
    buffer = bytes(position) + batch + b"next"
    header = read_batch_header(buffer, position)
    again = recompress_batch(buffer, position, header, after)
    assert again == encode(compression=after)


def test_recompression_of_a_bare_header() -> None:
    batch = encode_batch([], base_offset=3, last_offset_delta=2)
    header = read_batch_header(batch)
    assert recompress_batch(batch, 0, header, Compression.GZIP) == batch
