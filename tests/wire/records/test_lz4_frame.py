import struct

import pytest

from headwater.wire.records import (
    Compression,
    CorruptRecordError,
    DecompressedTooLargeError,
    compress,
    decompress,
)
from headwater.wire.records.lz4_frame import with_magic_0_checksum, with_standard_checksum

MAGIC = bytes.fromhex("04224d18")
#: Version 1, independent blocks, of at most 64 KB: the descriptor that Java writes.
DESCRIPTOR = b"\x60\x40"
STANDARD_CHECKSUM = b"\x82"
MAGIC_0_CHECKSUM = b"\x1a"
#: A stored block of five bytes and the end mark.
BODY = struct.pack("<I", 0x8000_0005) + b"hello" + bytes(4)

STANDARD = MAGIC + DESCRIPTOR + STANDARD_CHECKSUM + BODY
BROKEN = MAGIC + DESCRIPTOR + MAGIC_0_CHECKSUM + BODY


def read(data: bytes, max_bytes: int = 1 << 20) -> bytes:
    return decompress(Compression.LZ4, data, max_bytes)


def test_a_frame_written_by_hand() -> None:
    assert read(STANDARD) == b"hello"


def test_the_broken_checksum_is_refused_where_the_standard_holds() -> None:
    with pytest.raises(CorruptRecordError, match="damaged"):
        read(BROKEN)


def test_checksums_are_exchanged_both_ways() -> None:
    assert with_standard_checksum(BROKEN) == STANDARD
    assert with_standard_checksum(STANDARD) == STANDARD
    assert with_magic_0_checksum(STANDARD) == BROKEN


def test_a_descriptor_with_a_content_size_is_repaired_too() -> None:
    # The checksum of this descriptor is not known by heart, so every wrong one must become right.
    head = MAGIC + b"\x68\x40" + struct.pack("<Q", 5)
    assert {
        read(with_standard_checksum(head + bytes((wrong,)) + BODY)) for wrong in range(256)
    } == {b"hello"}


@pytest.mark.parametrize(
    "frame", [b"", MAGIC[:3], MAGIC, MAGIC + DESCRIPTOR, MAGIC + b"\x69\x40" + bytes(12), b"x" * 20]
)
def test_no_checksum_to_repair(frame: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        with_standard_checksum(frame)


def test_what_is_written_can_be_read_by_java() -> None:
    frame = compress(Compression.LZ4, b"hello world" * 10_000)
    assert frame.startswith(MAGIC + DESCRIPTOR + STANDARD_CHECKSUM)


def test_a_content_size_that_lies() -> None:
    head = MAGIC + b"\x68\x40" + struct.pack("<Q", 2**62)
    with pytest.raises(CorruptRecordError, match="damaged"):
        read(with_standard_checksum(head + b"\x00" + BODY))


def test_a_second_frame_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match=f"{len(STANDARD)} bytes follow"):
        read(STANDARD + STANDARD)


def test_the_bound_counts_all_blocks() -> None:
    frame = compress(Compression.LZ4, bytes(3 << 20))
    assert len(read(frame, max_bytes=3 << 20)) == 3 << 20
    with pytest.raises(DecompressedTooLargeError):
        read(frame, max_bytes=(3 << 20) - 1)
