"""Batches put together byte by byte, with nothing of the code under test."""

import struct

import pytest

from headwater.wire.records import (
    HEADER_SIZE,
    Compression,
    CorruptRecordError,
    Record,
    compress,
    decode_batch,
    decode_records,
    encode_batch,
    read_batch_header,
    validate_batch,
)


def crc32c_by_definition(data: bytes) -> int:
    """Bit by bit, so that the vectors below lean on nothing that the code leans on."""
    remainder = 0xFFFF_FFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F6_3B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFF_FFFF


def batch_by_hand(
    section: bytes,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int = 0,
    last_offset_delta: int = 0,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    record_count: int = 1,
) -> bytes:
    covered = b"".join(
        (
            struct.pack(">h", attributes),
            struct.pack(">i", last_offset_delta),
            struct.pack(">q", base_timestamp),
            struct.pack(">q", max_timestamp),
            struct.pack(">q", producer_id),
            struct.pack(">h", producer_epoch),
            struct.pack(">i", base_sequence),
            struct.pack(">i", record_count),
            section,
        )
    )
    after_length = b"".join(
        (
            struct.pack(">i", leader_epoch),
            struct.pack(">b", 2),
            struct.pack(">I", crc32c_by_definition(covered)),
            covered,
        )
    )
    return struct.pack(">qi", base_offset, len(after_length)) + after_length


#: Three records: plain, null key with two headers (one of them null), tombstone with a late time.
SECTION = bytes.fromhex(
    # length, attributes, timestamp delta, offset delta, key, value, header count, headers
    "18 00 00 00 02 6b 0a 76616c7565 00"
    "1e 00 14 02 01 00 04 02 61 02 31 06 c3a9c2 01"
    "12 00 e707 0a 04 6b32 01 00"
)
#: A first offset of 1000, then 1001 and 1005; times of 5000, 5010 and 4500.
BY_HAND = batch_by_hand(
    SECTION,
    base_offset=1000,
    leader_epoch=12,
    attributes=0x10,
    last_offset_delta=5,
    base_timestamp=5000,
    max_timestamp=5010,
    producer_id=77,
    producer_epoch=3,
    base_sequence=40,
    record_count=3,
)
DECODED = [
    Record(1000, 5000, b"k", b"value"),
    Record(1001, 5010, None, b"", (("a", b"1"), ("\u00e9\udcc2", None))),
    Record(1005, 4500, b"k2", None),
]


def test_the_checksum_of_the_vectors() -> None:
    assert crc32c_by_definition(b"123456789") == 0xE306_9283


def test_a_batch_written_by_hand_is_read() -> None:
    assert decode_batch(BY_HAND) == DECODED
    header = read_batch_header(BY_HAND)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (1000, 1005, 12)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 40)
    assert header.is_transactional and not header.is_control
    validate_batch(BY_HAND, 0, header)


def test_the_same_records_encode_to_the_same_bytes() -> None:
    batch = encode_batch(
        DECODED,
        leader_epoch=12,
        producer_id=77,
        producer_epoch=3,
        base_sequence=40,
        transactional=True,
    )
    assert batch == BY_HAND


@pytest.mark.parametrize(
    ("attributes", "times"), [(0x00, [5000, 5010, 4500]), (0x08, [9000] * 3), (0x48, [9000] * 3)]
)
def test_whose_clock_the_times_come_from(attributes: int, times: list[int]) -> None:
    batch = batch_by_hand(
        SECTION,
        attributes=attributes,
        last_offset_delta=5,
        base_timestamp=5000,
        max_timestamp=9000,
        record_count=3,
    )
    assert [record.timestamp for record in decode_batch(batch)] == times


@pytest.mark.parametrize("compression", list(Compression))
def test_compressed_sections_written_by_hand(compression: Compression) -> None:
    batch = batch_by_hand(
        compress(compression, SECTION),
        attributes=compression,
        base_offset=1000,
        last_offset_delta=5,
        base_timestamp=5000,
        record_count=3,
    )
    assert decode_batch(batch) == DECODED


def test_a_damaged_batch_is_noticed_unless_told_otherwise() -> None:
    damaged = bytearray(BY_HAND)
    damaged[HEADER_SIZE + 7] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        decode_batch(damaged)
    with pytest.raises(CorruptRecordError, match="checksum"):
        list(decode_records(damaged))
    assert decode_batch(damaged, check_crc=False)[0].value == b"walue"
    assert next(decode_records(damaged, check_crc=False)).value == b"walue"
