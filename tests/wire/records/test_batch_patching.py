import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    Compression,
    Record,
    crc_is_valid,
    decode_batch,
    encode_batch,
    patch_batch,
    patch_log_append_time,
    read_batch_header,
    validate_batch,
)
from tests.support.values.record_strategies import INT32, INT64, compressions, record_lists

TWO = encode_batch([Record(7, 100, b"a", b"1"), Record(8, 101, b"b", b"2")])


def header_of(**fields: Any) -> BatchHeader:
    return read_batch_header(TWO)._replace(**fields)


@given(record_lists(), INT64, INT32, st.integers(0, 3))
def test_patching_what_the_leader_assigns_keeps_the_checksum(
    records: list[Record], base_offset: int, leader_epoch: int, before: int
) -> None:
    batch = encode_batch(records)
    old = read_batch_header(batch)
    buffer = bytearray(before) + batch
    patch_batch(memoryview(buffer), before, base_offset=base_offset, leader_epoch=leader_epoch)
    new = read_batch_header(buffer, before)
    assert new == old._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    assert crc_is_valid(buffer, before, new)
    assert buffer[: before + 8] == bytes(before) + struct.pack(">q", base_offset)
    assert buffer[before + LOG_OVERHEAD + 4 :] == batch[LOG_OVERHEAD + 4 :]


def test_patching_one_field_leaves_the_other() -> None:
    buffer = bytearray(TWO)
    patch_batch(buffer, 0, leader_epoch=9)
    assert read_batch_header(buffer) == header_of(leader_epoch=9)
    patch_batch(buffer, 0, base_offset=70)
    assert read_batch_header(buffer) == header_of(leader_epoch=9, base_offset=70)


@given(record_lists(), compressions, INT64, st.integers(0, 3))
def test_patching_the_append_time(
    records: list[Record], compression: Compression, timestamp_ms: int, before: int
) -> None:
    batch = encode_batch(records, compression=compression, transactional=True, producer_id=1)
    buffer = bytearray(before) + batch + b"next"
    old = read_batch_header(batch)
    patch_log_append_time(buffer, before, old, timestamp_ms)
    new = read_batch_header(buffer, before)
    assert new == old._replace(
        attributes=old.attributes | 0x08, max_timestamp=timestamp_ms, crc=new.crc
    )
    validate_batch(buffer, before, new)
    assert buffer[before + HEADER_SIZE :] == batch[HEADER_SIZE:] + b"next"
    decoded = decode_batch(buffer, before)
    assert decoded == [record._replace(timestamp=timestamp_ms) for record in records]
