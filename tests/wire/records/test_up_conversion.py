import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    Compression,
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    Record,
    TimestampType,
    convert_to_v2,
    decode_batch,
    encode_batch,
    encode_legacy,
    read_batch_header,
    validate_batch,
)
from tests.support.values.record_strategies import compressions, record_lists

OLD_COMPRESSIONS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
RECORDS = [Record(3, 70, b"a", b"1"), Record(5, 60, None, b"2"), Record(6, 65, b"c", None)]


@given(
    record_lists(with_headers=False),
    st.sampled_from((0, 1)),
    st.sampled_from(OLD_COMPRESSIONS),
    compressions,
)
def test_records_survive(
    records: list[Record], magic: int, before: Compression, after: Compression
) -> None:
    old = encode_legacy(records, magic=magic, compression=before)
    new = convert_to_v2(old, compression=after)
    header = read_batch_header(new)
    validate_batch(new, 0, header)
    assert header.size_bytes == len(new)
    assert header.compression is after
    if magic == 0:
        records = [record._replace(timestamp=-1) for record in records]
    assert decode_batch(new) == records


@pytest.mark.parametrize("compression", OLD_COMPRESSIONS)
def test_the_compression_is_kept_unless_another_is_asked_for(compression: Compression) -> None:
    old = encode_legacy(RECORDS, magic=1, compression=compression)
    assert read_batch_header(convert_to_v2(old)).compression is compression


def test_a_leader_gives_offsets_and_its_epoch() -> None:
    # A producer may leave any offset in uncompressed messages.
    old = b"".join(encode_legacy([record._replace(offset=-1)], magic=1) for record in RECORDS)
    new = convert_to_v2(old, base_offset=200, leader_epoch=8)
    assert [record.offset for record in decode_batch(new)] == [200, 201, 202]
    assert read_batch_header(new).leader_epoch == 8


def test_offsets_that_are_kept_must_be_possible() -> None:
    old = encode_legacy([RECORDS[0], RECORDS[0], RECORDS[1]], magic=1)
    with pytest.raises(InvalidRecordError, match="does not follow"):
        convert_to_v2(old)
    with pytest.raises(InvalidRecordError, match="cannot span"):
        convert_to_v2(encode_legacy([Record(-1, 0, None, None)], magic=0))


def test_append_time_is_the_time_of_all() -> None:
    new = convert_to_v2(encode_legacy(RECORDS, magic=0), append_time_ms=999)
    assert read_batch_header(new).timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in decode_batch(new)] == [999, 999, 999]


@pytest.mark.parametrize("compression", OLD_COMPRESSIONS)
def test_append_time_is_kept(compression: Compression) -> None:
    old = encode_legacy(
        [record._replace(timestamp=800) for record in RECORDS],
        magic=1,
        compression=compression,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    new = convert_to_v2(old)
    assert read_batch_header(new).timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in decode_batch(new)} == {800}


def test_several_wrappers_become_one_batch() -> None:
    first = encode_legacy(RECORDS, magic=0, compression=Compression.GZIP)
    second = encode_legacy([Record(9, 80, b"z", b"9")], magic=1, compression=Compression.LZ4)
    new = convert_to_v2(first + second)
    assert [record.offset for record in decode_batch(new)] == [3, 5, 6, 9]
    assert read_batch_header(new).compression is Compression.GZIP


def test_nothing_gives_nothing() -> None:
    assert convert_to_v2(b"") == b""


def test_what_is_not_old_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="magic 2"):
        convert_to_v2(encode_batch(RECORDS))


def test_damage_is_noticed() -> None:
    old = bytearray(encode_legacy(RECORDS, magic=1))
    old[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        convert_to_v2(old)


def test_the_bound_does_not_count_what_came_uncompressed() -> None:
    plain = encode_legacy([Record(0, 0, None, bytes(40_000))], magic=1)
    new = convert_to_v2(plain * 2, base_offset=0, max_decompressed_bytes=50_000)
    assert len(decode_batch(new)) == 2


def test_the_bound_is_for_the_whole_set() -> None:
    wrapper = encode_legacy(
        [Record(0, 0, None, bytes(40_000))], magic=1, compression=Compression.LZ4
    )
    assert len(decode_batch(convert_to_v2(wrapper, max_decompressed_bytes=50_000))) == 1
    with pytest.raises(DecompressedTooLargeError):
        convert_to_v2(wrapper * 2, base_offset=0, max_decompressed_bytes=50_000)
