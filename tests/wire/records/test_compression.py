import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.wire.records import (
    Compression,
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    UnsupportedCompressionError,
    compress,
    decompress,
)
from headwater.wire.records.compression import STREAMS_MAX, compression_of
from tests.support.values.record_strategies import compressions

CODECS = [kind for kind in Compression if kind is not Compression.NONE]
MEBIBYTE = 1 << 20

ZSTD_MAGIC = bytes.fromhex("28b52ffd")
#: One frame, its content size absent, of one raw block.
ZSTD_HELLO = ZSTD_MAGIC + bytes.fromhex("0058290000") + b"hello"

contents = st.one_of(
    st.binary(max_size=2000),
    st.tuples(st.binary(min_size=1, max_size=30), st.integers(1, 20_000)).map(
        lambda pattern: pattern[0] * pattern[1]
    ),
)


@given(compressions, contents)
def test_round_trip(kind: Compression, data: bytes) -> None:
    compressed = compress(kind, data)
    assert decompress(kind, compressed, max_bytes=len(data)) == data
    assert decompress(kind, memoryview(bytearray(compressed))) == data


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("size", [0, 1, 32_767, 32_768, 65_536, 65_537, 3 * MEBIBYTE])
def test_sizes_around_the_codecs_blocks(kind: Compression, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    assert decompress(kind, compress(kind, data), max_bytes=size) == data


@pytest.mark.parametrize(
    ("kind", "levels"),
    [
        (Compression.GZIP, (1, 9)),
        (Compression.SNAPPY, (1, 9)),
        (Compression.LZ4, (1, 9, 17)),
        (Compression.ZSTD, (-7, 1, 19, 22)),
    ],
)
def test_every_level_is_readable(kind: Compression, levels: tuple[int, ...]) -> None:
    data = b"the quick brown fox" * 500
    for level in levels:
        assert decompress(kind, compress(kind, data, level)) == data


def test_a_level_has_an_effect() -> None:
    data = bytes(zlib.crc32(bytes((i & 0xFF, i >> 8))) >> 3 & 0x1F for i in range(60_000))
    for kind, low, high in (
        (Compression.GZIP, 1, 9),
        (Compression.LZ4, 1, 12),
        (Compression.ZSTD, -5, 19),
    ):
        assert len(compress(kind, data, high)) < len(compress(kind, data, low))


@pytest.mark.parametrize("kind", CODECS)
def test_one_byte_more_than_allowed_is_too_much(kind: Compression) -> None:
    data = b"ab" * 50_000
    with pytest.raises(DecompressedTooLargeError, match="99999") as caught:
        decompress(kind, compress(kind, data), max_bytes=len(data) - 1)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert isinstance(caught.value, InvalidRecordError)


def test_the_bound_holds_without_compression_too() -> None:
    with pytest.raises(DecompressedTooLargeError):
        decompress(Compression.NONE, b"12345", max_bytes=4)


@pytest.mark.parametrize("kind", CODECS)
def test_every_truncation_is_refused(kind: Compression) -> None:
    compressed = compress(kind, b"the quick brown fox jumps" * 40)
    for length in range(len(compressed)):
        if kind is Compression.SNAPPY and length == 16:
            continue  # A xerial header alone is a whole stream of nothing.
        with pytest.raises(CorruptRecordError):
            decompress(kind, compressed[:length])


@pytest.mark.parametrize("kind", CODECS)
def test_bytes_after_the_end_are_refused(kind: Compression) -> None:
    with pytest.raises(CorruptRecordError):
        decompress(kind, compress(kind, b"hello") + b"\x00")


@pytest.mark.parametrize("kind", CODECS)
def test_a_bomb_is_abandoned_while_it_grows(kind: Compression) -> None:
    bomb = compress(kind, bytes(48 * MEBIBYTE))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLargeError):
            decompress(kind, bomb, max_bytes=MEBIBYTE)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # zstd may yield 8 MiB at a time; twice that for its growing result.
    assert peak_bytes < 20 * MEBIBYTE


@pytest.mark.parametrize(
    ("kind", "join"),
    [
        (Compression.GZIP, lambda part: compress(Compression.GZIP, part)),
        (Compression.ZSTD, lambda part: compress(Compression.ZSTD, part)),
    ],
)
def test_streams_in_a_row(kind: Compression, join: Callable[[bytes], bytes]) -> None:
    assert decompress(kind, join(b"one ") + join(b"") + join(b"two")) == b"one two"
    assert decompress(kind, join(b"x") * STREAMS_MAX) == b"x" * STREAMS_MAX
    with pytest.raises(CorruptRecordError, match="more than"):
        decompress(kind, join(b"x") * (STREAMS_MAX + 1))
    with pytest.raises(DecompressedTooLargeError):
        decompress(kind, join(b"one ") + join(b"two"), max_bytes=6)


def test_zstd_written_by_hand_without_content_size() -> None:
    assert decompress(Compression.ZSTD, ZSTD_HELLO) == b"hello"


def test_zstd_streams_of_unknown_size_as_java_writes_them() -> None:
    data = b"0123456789" * 30_000
    stream = zstandard.ZstdCompressor(level=3).compressobj()
    compressed = stream.compress(data) + stream.flush()
    assert zstandard.get_frame_parameters(compressed).content_size in (0, 2**64 - 1)
    assert decompress(Compression.ZSTD, compressed, max_bytes=len(data)) == data


def test_a_zstd_frame_that_lies_about_its_size_allocates_nothing_for_it() -> None:
    # A content size of 2^62 in eight bytes, which is also the window: too large to even begin.
    claim = ZSTD_MAGIC + b"\xe0" + (2**62).to_bytes(8, "little") + b"\x29\x00\x00hello"
    # A content size of 100 MiB, which may well be true, but is not.
    modest = ZSTD_MAGIC + b"\xa0" + (100 * MEBIBYTE).to_bytes(4, "little") + b"\x29\x00\x00hello"
    tracemalloc.start()
    try:
        for frame in (claim, modest):
            with pytest.raises(CorruptRecordError):
                decompress(Compression.ZSTD, frame)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEBIBYTE


def test_gzip_is_what_the_standard_library_reads() -> None:
    assert zlib.decompress(compress(Compression.GZIP, b"hello"), wbits=31) == b"hello"


@pytest.mark.parametrize("code", [5, 6, 7])
def test_unknown_codes(code: int) -> None:
    with pytest.raises(UnsupportedCompressionError, match=str(code)) as caught:
        compression_of(0x38 | code)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_known_codes_whatever_the_other_bits_are() -> None:
    assert [compression_of(0x78 | code) for code in range(5)] == list(Compression)
    assert compression_of(-1 & ~0x7) is Compression.NONE


@given(st.sampled_from(CODECS), st.binary(max_size=200))
def test_random_bytes_never_crash(kind: Compression, data: bytes) -> None:
    with suppress(CorruptRecordError, DecompressedTooLargeError):
        assert len(decompress(kind, data, max_bytes=MEBIBYTE)) <= MEBIBYTE


@given(st.sampled_from(CODECS), contents, st.data())
def test_damaged_streams_never_crash(kind: Compression, data: bytes, draw: st.DataObject) -> None:
    compressed = bytearray(compress(kind, data))
    for _ in range(draw.draw(st.integers(1, 4))):
        compressed[draw.draw(st.integers(0, len(compressed) - 1))] = draw.draw(st.integers(0, 255))
    with suppress(CorruptRecordError, DecompressedTooLargeError):
        assert len(decompress(kind, compressed, max_bytes=MEBIBYTE)) <= MEBIBYTE
