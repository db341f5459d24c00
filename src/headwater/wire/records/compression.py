"""The four codecs of record batches, and a bound on what any of them may blow up to.

A few hundred bytes can claim, or really hold, gigabytes. So no size that a stream claims is ever
allocated on trust, and `max_bytes` is enforced while decompressing: a stream that grows beyond it
is abandoned there and then. What is held at that moment is at most twice `max_bytes`, plus a few
megabytes of the codec's own. (A zstd frame may also reserve a window, of `max_bytes` or 128 MiB,
but that is address space, which turns into memory only as real data fills it.)

The default bound is 256 MiB. A request is at most 100 MiB (`socket.request.max.bytes`), so whatever
arrived uncompressed can be recompressed and still be read, and the usual batch of 1 MB may have
compressed 256 times; beyond that it is more likely an attack than data. A caller that decodes bytes
from a stranger should pass a smaller bound of its own: as Python objects, records take many times
the bytes they were made of.

What is written is what Java clients write and read: gzip with one member, snappy in xerial's blocks
(`snappy_blocks`), an lz4 frame of independent 64 KB blocks (`lz4_frame`), a zstd frame.
"""

import zlib
from enum import IntEnum

import zstandard

from headwater.wire.records import lz4_frame, snappy_blocks
from headwater.wire.records.errors import (
    CorruptRecordError,
    DecompressedTooLargeError,
    UnsupportedCompressionError,
)
from headwater.wire.records.record import Buffer

DECOMPRESSED_BYTES_MAX = 256 << 20
COMPRESSION_MASK = 0x07

#: gzip members and zstd frames may follow one another. Nobody writes more than one into a batch;
#: the limit keeps a stream of empty ones from costing more time than its size suggests.
STREAMS_MAX = 64

_GZIP_WBITS = 31
#: As far back as Kafka's own decoder lets a frame refer; levels above 19 use all of it.
_ZSTD_WINDOW_BYTES = 1 << 27
_ZSTD_WINDOW_BYTES_MAX = 1 << 31
#: Four bytes of zstd can stand for a block of 128 KiB, so feeding it this share of what is left of
#: `max_bytes` at a time yields at most about a quarter of that before its output is looked at.
_ZSTD_EXPANSION_SHIFT = 17
_ZSTD_STEP_BYTES_MIN = 256


class Compression(IntEnum):
    """Attribute bits 0 to 2, in every format of batches and messages."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_BY_CODE = tuple(Compression)


def compression_of(attributes: int) -> Compression:
    """The codec that a batch's or message's attributes name."""
    code = attributes & COMPRESSION_MASK
    if code >= len(_BY_CODE):
        raise UnsupportedCompressionError(f"There is no compression with the code {code}.")
    return _BY_CODE[code]


def compress(kind: Compression, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the given codec. Without a level it is the codec's default; snappy has none."""
    match kind:
        case Compression.GZIP:
            return zlib.compress(data, -1 if level is None else level, wbits=_GZIP_WBITS)
        case Compression.SNAPPY:
            return snappy_blocks.compress(data)
        case Compression.LZ4:
            return lz4_frame.compress(data, level)
        case Compression.ZSTD:
            return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)
        case _:
            return bytes(data)


def decompress(kind: Compression, data: Buffer, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What `data` stands for, if it is whole and not larger than `max_bytes`."""
    match kind:
        case Compression.GZIP:
            return _decompress_gzip(data, max_bytes)
        case Compression.SNAPPY:
            return snappy_blocks.decompress(data, max_bytes)
        case Compression.LZ4:
            return lz4_frame.decompress(data, max_bytes)
        case Compression.ZSTD:
            return _decompress_zstd(data, max_bytes)
        case _:
            if len(data) > max_bytes:
                raise DecompressedTooLargeError.beyond(max_bytes)
            return bytes(data)


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    left = max_bytes
    for _ in range(STREAMS_MAX):
        stream = zlib.decompressobj(wbits=_GZIP_WBITS)
        try:
            # One byte more than allowed tells too much from just enough; 0 would mean no limit.
            piece = stream.decompress(data, left + 1)
        except zlib.error as error:
            raise CorruptRecordError(f"The gzip stream is damaged: {error}.") from error
        left -= len(piece)
        if left < 0:
            raise DecompressedTooLargeError.beyond(max_bytes)
        if not stream.eof:
            raise CorruptRecordError("The gzip stream is cut short.")
        pieces.append(piece)
        data = stream.unused_data
        if not data:
            return b"".join(pieces)
    raise CorruptRecordError(f"The gzip stream has more than {STREAMS_MAX} members.")


def _decompress_zstd(data: Buffer, max_bytes: int) -> bytes:
    window_bytes = min(max(_ZSTD_WINDOW_BYTES, max_bytes), _ZSTD_WINDOW_BYTES_MAX)
    decompressor = zstandard.ZstdDecompressor(max_window_size=window_bytes)
    view = memoryview(data)
    pieces: list[bytes] = []
    left = max_bytes
    position = 0
    for _ in range(STREAMS_MAX):
        stream = decompressor.decompressobj()
        while not stream.eof:
            if position == len(view):
                raise CorruptRecordError("The zstd frame is cut short.")
            step_bytes = max(_ZSTD_STEP_BYTES_MIN, left >> _ZSTD_EXPANSION_SHIFT)
            step = view[position : position + step_bytes]
            try:
                piece = stream.decompress(step)
            except zstandard.ZstdError as error:
                raise CorruptRecordError(f"The zstd frame is damaged: {error}.") from error
            left -= len(piece)
            if left < 0:
                raise DecompressedTooLargeError.beyond(max_bytes)
            pieces.append(piece)
            position += len(step)
        position -= len(stream.unused_data)
        if position == len(view):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise CorruptRecordError(f"The zstd stream has more than {STREAMS_MAX} frames.")
