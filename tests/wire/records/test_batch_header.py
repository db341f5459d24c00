import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    HEADER_SIZE,
    BatchHeader,
    Compression,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    TimestampType,
    UnsupportedCompressionError,
    crc_is_valid,
    decode_batch,
    encode_batch,
    iter_batch_headers,
    read_batch_header,
    validate_batch,
)
from headwater.wire.records.batch_header import write_crc
from tests.support.values.record_strategies import (
    INT16,
    INT32,
    INT64,
    compressions,
    record_lists,
    timestamp_types,
)

TWO = encode_batch([Record(7, 100, b"a", b"1"), Record(8, 101, b"b", b"2")])


def header_of(**fields: Any) -> BatchHeader:
    return read_batch_header(TWO)._replace(**fields)


def with_fields(batch: bytes, **fields: Any) -> bytearray:
    """The batch with other header fields and a checksum that fits them."""
    header = read_batch_header(batch)._replace(**fields)
    changed = bytearray(struct.pack(">qiibIhiqqqhii", *header) + batch[HEADER_SIZE:])
    write_crc(changed, 0, len(changed))
    return changed


def check_header(batch: bytes | bytearray) -> None:
    validate_batch(batch, 0, read_batch_header(batch))


@given(
    st.builds(
        BatchHeader,
        INT64,
        st.integers(49, 2**31 - 1),
        INT32,
        st.just(2),
        st.integers(0, 2**32 - 1),
        INT16,
        INT32,
        INT64,
        INT64,
        INT64,
        INT16,
        INT32,
        INT32,
    ),
    st.binary(max_size=5),
)
def test_fields_are_read_as_they_stand(header: BatchHeader, before: bytes) -> None:
    data = before + struct.pack(">qiibIhiqqqhii", *header)
    for buffer in (data, bytearray(data), memoryview(data)):
        read = read_batch_header(buffer, len(before))
        assert read == header
        assert type(read) is BatchHeader


@given(
    record_lists(),
    compressions,
    timestamp_types,
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 2**62),
)
def test_the_view_equals_a_full_decode(
    records: list[Record],
    compression: Compression,
    timestamp_type: TimestampType,
    transactional: bool,
    control: bool,
    delete_horizon_ms: int | None,
) -> None:
    batch = encode_batch(
        records,
        compression=compression,
        timestamp_type=timestamp_type,
        transactional=transactional,
        control=control,
        delete_horizon_ms=delete_horizon_ms,
        leader_epoch=3,
        producer_id=4,
        producer_epoch=5,
        base_sequence=6,
    )
    header = read_batch_header(batch)
    decoded = decode_batch(batch)
    assert header.size_bytes == len(batch)
    assert header.record_count == len(decoded)
    assert header.base_offset == decoded[0].offset
    assert header.last_offset == decoded[-1].offset
    assert header.next_offset == header.last_offset + 1
    assert header.max_timestamp == max(record.timestamp for record in decoded)
    assert header.compression is compression
    assert header.timestamp_type is timestamp_type
    assert header.is_transactional is transactional
    assert header.is_control is control
    assert header.delete_horizon_ms == delete_horizon_ms
    assert (header.leader_epoch, header.producer_id, header.producer_epoch) == (3, 4, 5)
    assert header.last_sequence == 6 + header.last_offset - header.base_offset
    assert crc_is_valid(batch, 0, header)
    validate_batch(batch, 0, header)


@pytest.mark.parametrize(
    ("base_sequence", "last_offset_delta", "last_sequence"),
    [
        (-1, 5, -1),
        (0, 0, 0),
        (10, 4, 14),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 3, 2, 2**31 - 1),
        (2**31 - 3, 3, 0),
        (2**31 - 3, 10, 7),
        (2**31 - 1, 2**31 - 1, 2**31 - 2),
    ],
)
def test_sequences_wrap_to_zero(
    base_sequence: int, last_offset_delta: int, last_sequence: int
) -> None:
    header = header_of(base_sequence=base_sequence, last_offset_delta=last_offset_delta)
    assert header.last_sequence == last_sequence


def test_a_producer_id_of_zero_is_one() -> None:
    assert header_of(producer_id=0).has_producer_id
    assert not header_of(producer_id=-1).has_producer_id


def test_an_unknown_compression_is_refused_when_asked_for() -> None:
    header = header_of(attributes=0x0D)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    with pytest.raises(UnsupportedCompressionError, match="5"):
        _ = header.compression


@pytest.mark.parametrize("length", range(0, HEADER_SIZE, 12))
def test_a_header_cut_short(length: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"only {length}"):
        read_batch_header(b"???" + TWO[:length], 3)
    with pytest.raises(CorruptRecordError, match="only 0"):
        read_batch_header(TWO, len(TWO) + length)


@pytest.mark.parametrize("batch_length", [-(2**31), -1, 0, 48])
def test_a_length_below_the_header(batch_length: int) -> None:
    data = bytearray(TWO)
    struct.pack_into(">i", data, 8, batch_length)
    with pytest.raises(CorruptRecordError, match=f"length {batch_length}"):
        read_batch_header(data)


@pytest.mark.parametrize("magic", [0, 1, 3, 0x82])
def test_another_magic(magic: int) -> None:
    data = bytearray(TWO)
    data[16] = magic
    with pytest.raises(CorruptRecordError, match="magic"):
        read_batch_header(data)


def test_only_the_header_is_needed_to_read_it() -> None:
    assert read_batch_header(TWO[:HEADER_SIZE]).record_count == 2


@given(st.lists(record_lists(max_size=3), max_size=5), st.binary(max_size=4))
def test_walking_batches(lists: list[list[Record]], before: bytes) -> None:
    batches = [encode_batch(records) for records in lists]
    data = before + b"".join(batches)
    walked = list(iter_batch_headers(data, start=len(before)))
    assert [header for _, header in walked] == [read_batch_header(batch) for batch in batches]
    assert [data[at : at + header.size_bytes] for at, header in walked] == batches


def test_walking_part_of_a_buffer() -> None:
    data = TWO * 3
    size = len(TWO)
    assert [at for at, _ in iter_batch_headers(data, start=size, end=2 * size)] == [size]


@pytest.mark.parametrize("missing", [1, 16, 40])
def test_walking_into_a_cut_batch(missing: int) -> None:
    walk = iter_batch_headers((TWO + TWO)[:-missing])
    assert next(walk)[0] == 0
    with pytest.raises(CorruptRecordError):
        next(walk)
    within = iter_batch_headers(TWO + TWO, end=2 * len(TWO) - 1)
    assert next(within)[0] == 0
    with pytest.raises(CorruptRecordError, match=f"of which {len(TWO) - 1} are there"):
        next(within)


@given(st.data())
def test_any_flipped_bit_under_the_checksum_is_noticed(data: st.DataObject) -> None:
    bit = data.draw(st.integers(17 * 8, len(TWO) * 8 - 1))
    damaged = bytearray(TWO)
    damaged[bit // 8] ^= 1 << bit % 8
    header = read_batch_header(damaged)
    assert not crc_is_valid(damaged, 0, header)
    with pytest.raises(CorruptRecordError, match="checksum"):
        validate_batch(damaged, 0, header)


def test_a_batch_that_is_not_all_there_has_no_valid_checksum() -> None:
    header = read_batch_header(TWO)
    assert crc_is_valid(TWO, 0, header)
    assert not crc_is_valid(TWO[:-1], 0, header)
    with pytest.raises(CorruptRecordError, match=f"claims {len(TWO)} bytes"):
        validate_batch(TWO[:-1], 0, header)


def test_the_checksum_may_be_taken_on_trust() -> None:
    damaged = bytearray(TWO)
    damaged[-1] ^= 1
    validate_batch(damaged, 0, read_batch_header(damaged), check_crc=False)
    with pytest.raises(CorruptRecordError):
        validate_batch(damaged, 0, read_batch_header(damaged))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"last_offset_delta": -1}, "no valid range"),
        ({"last_offset_delta": -(2**31)}, "no valid range"),
        ({"base_offset": -1}, "no valid range"),
        ({"base_offset": 2**63 - 2}, "no valid range"),
        ({"record_count": -1}, "claims -1 records"),
        ({"record_count": 3}, "3 records for 2 offsets"),
        ({"record_count": 10**6, "last_offset_delta": 10**6}, "1000000 records in 18 bytes"),
        ({"record_count": 0}, "0 records in 18 bytes"),
    ],
)
def test_headers_that_contradict_themselves(fields: dict[str, int], sentence: str) -> None:
    with pytest.raises(InvalidRecordError, match=sentence):
        check_header(with_fields(TWO, **fields))


def test_an_unknown_compression_is_no_valid_batch() -> None:
    with pytest.raises(UnsupportedCompressionError):
        check_header(with_fields(TWO, attributes=7))


def test_compressed_records_need_bytes() -> None:
    empty = encode_batch([], base_offset=4, last_offset_delta=9)
    check_header(empty)
    check_header(with_fields(empty, attributes=Compression.GZIP))
    with pytest.raises(InvalidRecordError, match="1 records in 0 bytes"):
        check_header(with_fields(empty, attributes=Compression.GZIP, record_count=1))


def test_fewer_records_than_offsets_are_what_compaction_leaves() -> None:
    check_header(with_fields(TWO, last_offset_delta=1000))
    check_header(with_fields(TWO, base_offset=2**63 - 3))
