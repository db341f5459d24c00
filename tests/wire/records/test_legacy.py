import struct
import zlib

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
    UnsupportedCompressionError,
    compress,
    decode_batch,
    decode_records,
    encode_legacy,
)
from tests.support.values.record_strategies import record_lists

OLD_COMPRESSIONS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]


def message_by_hand(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp: int = 0,
) -> bytes:
    covered = struct.pack(">bb", magic, attributes)
    if magic == 1:
        covered += struct.pack(">q", timestamp)
    for field in (key, value):
        covered += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    crc = zlib.crc32(covered)
    return struct.pack(">qiI", offset, len(covered) + 4, crc) + covered


def test_a_message_of_magic_0_byte_by_byte() -> None:
    message = bytes.fromhex(
        "0000000000000005"  # offset
        "00000013"  # size
        "00000000"  # CRC, put in below
        "00 00"  # magic, attributes
        "00000002 6b65"  # key
        "00000003 766131"  # value
    )
    crc = struct.pack(">I", zlib.crc32(message[16:]))
    message = message[:12] + crc + message[16:]
    assert decode_batch(message) == [Record(5, -1, b"ke", b"va1")]
    assert message == message_by_hand(5, b"ke", b"va1")
    assert encode_legacy([Record(5, -1, b"ke", b"va1")], magic=0) == message


def test_a_message_of_magic_1_has_a_timestamp() -> None:
    message = message_by_hand(5, None, None, magic=1, timestamp=1234)
    assert len(message) == 34
    assert decode_batch(message) == [Record(5, 1234, None, None)]
    assert encode_legacy([Record(5, 1234, None, None)], magic=1) == message


def test_a_wrapper_of_magic_0_holds_absolute_offsets() -> None:
    inner = message_by_hand(50, b"a", b"1") + message_by_hand(53, b"b", None)
    wrapper = message_by_hand(53, None, compress(Compression.GZIP, inner), attributes=1)
    assert decode_batch(wrapper) == [Record(50, -1, b"a", b"1"), Record(53, -1, b"b", None)]


def wrapper_of_magic_1(offset: int, *, attributes: int = 1, timestamp: int = 900) -> bytes:
    inner = b"".join(
        message_by_hand(relative, b"k", b"v", magic=1, timestamp=100 + relative)
        for relative in (0, 1, 4)
    )
    value = compress(Compression.GZIP, inner)
    return message_by_hand(offset, None, value, magic=1, attributes=attributes, timestamp=timestamp)


def test_a_wrapper_of_magic_1_holds_relative_offsets() -> None:
    records = decode_batch(wrapper_of_magic_1(54))
    assert [(record.offset, record.timestamp) for record in records] == [
        (50, 100),
        (51, 101),
        (54, 104),
    ]


def test_a_wrapper_of_magic_1_at_offset_0_starts_there() -> None:
    assert [record.offset for record in decode_batch(wrapper_of_magic_1(0))] == [0, 1, 4]


def test_a_wrapper_with_append_time_overrides_the_inner_times() -> None:
    records = decode_batch(wrapper_of_magic_1(54, attributes=1 | 0x08))
    assert [record.timestamp for record in records] == [900, 900, 900]


@pytest.mark.parametrize("offset", [3, 1, -1, -(2**63)])
def test_a_wrapper_before_its_messages(offset: int) -> None:
    with pytest.raises(InvalidRecordError, match="relative"):
        decode_batch(wrapper_of_magic_1(offset))


def test_relative_offsets_may_not_leave_the_wrapper() -> None:
    inner = message_by_hand(2**63 - 1, None, b"", magic=1) + message_by_hand(1, None, b"", magic=1)
    wrapper = message_by_hand(9, None, compress(Compression.SNAPPY, inner), magic=1, attributes=2)
    with pytest.raises(InvalidRecordError, match="relative"):
        decode_batch(wrapper)


@given(
    record_lists(with_headers=False),
    st.sampled_from((0, 1)),
    st.sampled_from([Compression.NONE, *OLD_COMPRESSIONS]),
    st.sampled_from(TimestampType),
)
def test_round_trip(
    records: list[Record], magic: int, compression: Compression, timestamp_type: TimestampType
) -> None:
    data = encode_legacy(
        records, magic=magic, compression=compression, timestamp_type=timestamp_type
    )
    expected = records
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in records]
    elif timestamp_type is TimestampType.LOG_APPEND_TIME and compression is not Compression.NONE:
        append_time = max(record.timestamp for record in records)
        expected = [record._replace(timestamp=append_time) for record in records]
    assert list(decode_records(data)) == expected
    assert list(decode_records(memoryview(b"??" + data + b"?"), start=2, end=2 + len(data))) == (
        expected
    )


def test_lz4_of_magic_0_carries_the_old_checksum_and_magic_1_the_right_one() -> None:
    records = [Record(0, -1, None, b"hello")]
    old = encode_legacy(records, magic=0, compression=Compression.LZ4)
    new = encode_legacy(records, magic=1, compression=Compression.LZ4)
    assert bytes.fromhex("04224d186040 1a") in old
    assert bytes.fromhex("04224d186040 82") in new


@pytest.mark.parametrize("checksum", [0x1A, 0x82, 0x00])
def test_lz4_of_magic_0_is_read_whatever_its_checksum(checksum: int) -> None:
    frame = bytearray(compress(Compression.LZ4, message_by_hand(3, b"k", b"v")))
    frame[6] = checksum
    wrapper = message_by_hand(3, None, bytes(frame), attributes=3)
    assert decode_batch(wrapper) == [Record(3, -1, b"k", b"v")]


def test_lz4_of_magic_1_must_have_the_right_checksum() -> None:
    frame = bytearray(compress(Compression.LZ4, message_by_hand(0, b"k", b"v", magic=1)))
    frame[6] = 0x1A
    with pytest.raises(CorruptRecordError, match="lz4"):
        decode_batch(message_by_hand(3, None, bytes(frame), magic=1, attributes=3))


def test_raw_snappy_is_read_as_well() -> None:
    inner = message_by_hand(0, None, None)
    block = bytes((len(inner), (len(inner) - 1) << 2)) + inner
    assert decode_batch(message_by_hand(0, None, block, attributes=2)) == [
        Record(0, -1, None, None)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_any_flipped_bit_is_noticed(magic: int) -> None:
    message = message_by_hand(1, b"key", b"value", magic=magic, timestamp=77)
    for position in range(12, len(message)):
        damaged = bytearray(message)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptRecordError):
            decode_batch(damaged)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_truncation_is_refused(magic: int) -> None:
    message = message_by_hand(1, b"key", b"value", magic=magic)
    for length in range(len(message)):
        with pytest.raises(CorruptRecordError):
            decode_batch(message[:length])


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 13, 23, 2**31 - 1])
def test_sizes_that_lie(size: int) -> None:
    message = bytearray(message_by_hand(1, b"key", b"value"))
    struct.pack_into(">i", message, 8, size)
    with pytest.raises(CorruptRecordError, match=f"claims {size}"):
        decode_batch(message)


@pytest.mark.parametrize("length", [-(2**31), -2, 13, 2**31 - 1])
@pytest.mark.parametrize(("position", "what"), [(18, "key"), (25, "value")])
def test_lengths_that_lie(length: int, position: int, what: str) -> None:
    message = bytearray(message_by_hand(1, b"key", b"value"))
    struct.pack_into(">i", message, position, length)
    with pytest.raises(InvalidRecordError, match=f"{what} claims {length}"):
        decode_batch(message, check_crc=False)


def test_lengths_that_do_not_add_up() -> None:
    message = bytearray(message_by_hand(1, b"key", b"value"))
    struct.pack_into(">i", message, 25, 4)
    with pytest.raises(InvalidRecordError, match="1 bytes follow"):
        decode_batch(message, check_crc=False)
    struct.pack_into(">i", message, 18, 12)
    with pytest.raises(InvalidRecordError, match="no room"):
        decode_batch(message, check_crc=False)


@pytest.mark.parametrize(
    ("wrapper", "sentence"),
    [
        (message_by_hand(0, None, None, attributes=1), "no value"),
        (message_by_hand(0, None, compress(Compression.GZIP, b""), attributes=1), "no messages"),
        (
            message_by_hand(
                0,
                None,
                compress(Compression.GZIP, message_by_hand(0, b"", b"")),
                magic=1,
                attributes=1,
            ),
            "magic 1 wraps one of magic 0",
        ),
        (
            message_by_hand(
                0,
                None,
                compress(
                    Compression.SNAPPY,
                    encode_legacy([Record(0, 0, b"", b"")], magic=0, compression=Compression.GZIP),
                ),
                attributes=2,
            ),
            "wraps another",
        ),
    ],
)
def test_wrappers_that_break_the_rules(wrapper: bytes, sentence: str) -> None:
    with pytest.raises(InvalidRecordError, match=sentence):
        decode_batch(wrapper)


def test_an_unknown_compression() -> None:
    with pytest.raises(UnsupportedCompressionError):
        decode_batch(message_by_hand(0, None, b"", attributes=6))


def test_a_cut_inner_message_is_refused() -> None:
    inner = message_by_hand(0, b"k", b"v") + message_by_hand(1, b"k", b"v")[:-1]
    with pytest.raises(CorruptRecordError, match="claims"):
        decode_batch(message_by_hand(1, None, compress(Compression.GZIP, inner), attributes=1))


@pytest.mark.parametrize("compression", OLD_COMPRESSIONS)
def test_the_bound_on_decompression(compression: Compression) -> None:
    data = encode_legacy([Record(0, 0, b"k", bytes(50_000))], magic=1, compression=compression)
    assert len(decode_batch(data, max_decompressed_bytes=50_100)) == 1
    with pytest.raises(DecompressedTooLargeError):
        decode_batch(data, max_decompressed_bytes=49_999)


def test_what_old_messages_cannot_hold() -> None:
    with pytest.raises(InvalidRecordError, match="headers"):
        encode_legacy([Record(0, 0, None, None, (("a", None),))], magic=1)
    with pytest.raises(InvalidRecordError, match="zstd"):
        encode_legacy([Record(0, 0, None, None)], magic=1, compression=Compression.ZSTD)
    with pytest.raises(InvalidRecordError, match="empty"):
        encode_legacy([], magic=1, compression=Compression.GZIP)
