import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    Compression,
    CorruptRecordError,
    DecompressedTooLargeError,
    compress,
    decompress,
)

HEADER = bytes.fromhex("82534e41505059000000000100000001")
#: By hand: the length 5, then a literal of five bytes.
RAW_HELLO = b"\x05\x10hello"


def framed(*blocks: bytes) -> bytes:
    return HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def read(data: bytes, max_bytes: int = 1 << 20) -> bytes:
    return decompress(Compression.SNAPPY, data, max_bytes)


def test_a_raw_block_as_librdkafka_writes_it() -> None:
    assert read(RAW_HELLO) == b"hello"


def test_a_stream_as_java_writes_it() -> None:
    assert read(framed(RAW_HELLO, b"\x01\x00!")) == b"hello!"


def test_a_stream_of_nothing() -> None:
    assert read(HEADER) == b""


def test_what_is_written_is_framed_in_blocks_of_32_kilobytes() -> None:
    data = bytes(range(256)) * 300
    stream = compress(Compression.SNAPPY, data)
    assert stream.startswith(HEADER)
    position = len(HEADER)
    sizes = []
    while position < len(stream):
        (length,) = struct.unpack_from(">i", stream, position)
        block = stream[position + 4 : position + 4 + length]
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(block))))
        position += 4 + length
    assert sizes == [32768, 32768, len(data) - 65536]


@given(st.binary(max_size=3000))
def test_raw_and_framed_give_the_same(data: bytes) -> None:
    assert read(bytes(cramjam.snappy.compress_raw(data))) == data
    assert read(compress(Compression.SNAPPY, data)) == data


@pytest.mark.parametrize("length", [0, -1, -(2**31), 8, 2**31 - 1])
def test_a_lying_block_length(length: int) -> None:
    with pytest.raises(CorruptRecordError, match="claims"):
        read(HEADER + struct.pack(">i", length) + RAW_HELLO)


def test_a_claim_beyond_any_snappy_ratio_is_a_lie() -> None:
    with pytest.raises(CorruptRecordError, match="cannot hold the 4294967295"):
        read(b"\xff\xff\xff\xff\x0f" + b"\x10hello")


def test_the_densest_block_is_believed() -> None:
    # One literal byte, then copies of 64 bytes from one byte back, three bytes each.
    copies = 1000
    size = 1 + 64 * copies
    length = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14))
    block = length + b"\x00a" + b"\xfe\x01\x00" * copies
    assert read(block) == b"a" * size


def test_the_bound_counts_all_blocks() -> None:
    assert read(framed(RAW_HELLO, RAW_HELLO), max_bytes=10) == b"hellohello"
    with pytest.raises(DecompressedTooLargeError, match="9 bytes"):
        read(framed(RAW_HELLO, RAW_HELLO), max_bytes=9)
