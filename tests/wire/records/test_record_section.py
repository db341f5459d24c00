"""Sections that lie, each by one field, behind a header that is consistent and a valid checksum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    HEADER_SIZE,
    Compression,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    compress,
    decode_batch,
    encode_batch,
    read_batch_header,
)
from headwater.wire.records.batch_header import HEADER_STRUCT, write_crc


def batch_of(
    section: bytes,
    *,
    record_count: int = 1,
    last_offset_delta: int = 10,
    compression: Compression = Compression.NONE,
) -> bytes:
    template = read_batch_header(encode_batch([Record(0, 0, None, None)]))
    section = compress(compression, section)
    header = template._replace(
        batch_length=49 + len(section),
        attributes=int(compression),
        record_count=record_count,
        last_offset_delta=last_offset_delta,
    )
    batch = bytearray(HEADER_STRUCT.pack(*header) + section)
    write_crc(batch, 0, len(batch))
    return bytes(batch)


def decode_hex(section: str, record_count: int = 1) -> list[Record]:
    return decode_batch(batch_of(bytes.fromhex(section), record_count=record_count))


def test_the_smallest_record() -> None:
    assert decode_hex("0c 00 00 00 01 01 00") == [Record(0, 0, None, None)]


def test_numbers_longer_than_need_be_are_read() -> None:
    # Every field but the attributes padded to two, three or four bytes.
    section = "32 00 8000 848000 828000 6b 8480808000 7676 8280808000 8200 61 828000 31"
    size = len(bytes.fromhex(section)) - 1
    assert decode_hex(f"{size * 2:02x}" + section[2:]) == [
        Record(2, 0, b"k", b"vv", (("a", b"1"),))
    ]


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("01 00 00 00 01 01 00", "record has the length -1"),
        ("0b 00 00 00 01 01 00", "record has the length -6"),
        ("0c 00 00 00 03 01 00", "key has the length -2"),
        ("0c 00 00 00 01 07 00", "value has the length -4"),
        ("0c 00 00 00 01 01 01", "-1 headers in 0 bytes"),
        ("0c 00 00 00 01 01 02", "1 headers in 0 bytes"),
        ("10 00 00 00 01 01 02 01 00", "header key has the length -1"),
        ("10 00 00 00 01 01 02 00 03", "header value has the length -2"),
        ("0c 00 00 01 01 01 00", "offset delta -1"),
        ("0c 00 00 16 01 01 00", "offset delta 11 in a batch whose last is 10"),
        ("0a 00 00 00 01 01 00", "1 bytes after the end"),
        ("0e 00 00 00 01 01 00 00", "1 bytes before the end"),
        ("00 00 00 00 01 01 00", "6 bytes after the end"),
        ("0c 00 00 00 01 01 00 00", "1 bytes follow the 1 records"),
        ("16 00 00 00 01 01 feffffff0f", "2147483647 headers"),
    ],
)
def test_lies(section: str, sentence: str) -> None:
    with pytest.raises(InvalidRecordError, match=sentence):
        decode_hex(section)


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("feffffff0f 00 00 00 01 01", "end inside one, after 0"),
        ("0e 00 00 00 01 01 80", "inside a variable-length number"),
        ("16 00 00 00 feffffff0f 01 00", "end inside one"),
        ("16 00 00 00 01 feffffff0f 00", "end inside one"),
        ("16 00 00 00 80808080808000 01", "longer than 5 bytes"),
        ("20 00 8080808080808080808000 00 01 01 00", "longer than 10 bytes"),
        ("16 00 00 ffffffff1f 01 01 00", "too large"),
        ("12 00 00 00 01 01 02 feffffff0f", "end inside one"),
    ],
)
def test_damage(section: str, sentence: str) -> None:
    with pytest.raises(CorruptRecordError, match=sentence):
        decode_hex(section)


@pytest.mark.parametrize("compression", list(Compression))
def test_a_count_that_is_too_large(compression: Compression) -> None:
    section = bytes.fromhex("10 00 00 00 01 04 6162 00")
    assert len(decode_batch(batch_of(section, compression=compression))) == 1
    with pytest.raises(InvalidRecordError, match="2 records"):
        decode_batch(batch_of(section, record_count=2, compression=compression))
    # The bytes would do for two records of the smallest size, but there is only one.
    longer = bytes.fromhex("1c 00 00 00 01 10 6162636465666768 00")
    with pytest.raises(CorruptRecordError, match="after 1 whole"):
        decode_batch(batch_of(longer, record_count=2, compression=compression))


@pytest.mark.parametrize("compression", list(Compression))
def test_a_count_that_is_too_small(compression: Compression) -> None:
    section = bytes.fromhex("0c 00 00 00 01 01 00 0c 00 00 02 01 01 00")
    assert len(decode_batch(batch_of(section, record_count=2, compression=compression))) == 2
    for record_count in (0, 1):
        with pytest.raises(InvalidRecordError):
            decode_batch(batch_of(section, record_count=record_count, compression=compression))


@given(st.sampled_from(list(Compression)), st.data())
def test_no_prefix_of_a_section_passes(compression: Compression, data: st.DataObject) -> None:
    records = [Record(i, i, b"key", b"value" * 30, (("h", b"x"),)) for i in range(4)]
    section = encode_batch(records)[HEADER_SIZE:]
    cut = data.draw(st.integers(0, len(section) - 1))
    batch = batch_of(section[:cut], record_count=4, compression=compression)
    with pytest.raises((CorruptRecordError, InvalidRecordError)):
        decode_batch(batch)


def test_the_same_offset_twice_is_read_as_some_clients_wrote_it() -> None:
    assert [record.offset for record in decode_hex("0c000000010100" * 2, 2)] == [0, 0]


def test_times_wrap_as_in_java() -> None:
    records = [Record(0, -1, None, None), Record(1, 2**63 - 1, None, None)]
    assert decode_batch(encode_batch(records)) == records
    extremes = [Record(0, 2**63 - 1, None, None), Record(1, -(2**63), None, None)]
    assert decode_batch(encode_batch(extremes)) == extremes


def test_a_null_header_key_is_refused() -> None:
    headers: object = ((None, b"v"),)
    with pytest.raises(InvalidRecordError, match="key may not be null"):
        encode_batch([Record(0, 0, None, None, headers)])  # type: ignore[arg-type]


def test_a_header_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="no valid text"):
        encode_batch([Record(0, 0, None, None, (("\ud800", b"v"),))])


@given(st.binary(max_size=20))
def test_header_keys_of_any_bytes_survive_a_rewrite(key: bytes) -> None:
    body = b"\0\0\0\1\1\2" + bytes((len(key) * 2,)) + key + b"\1"
    batch = batch_of(bytes((len(body) * 2,)) + body, last_offset_delta=0)
    records = decode_batch(batch)
    assert encode_batch(records)[HEADER_SIZE:] == batch[HEADER_SIZE:]
