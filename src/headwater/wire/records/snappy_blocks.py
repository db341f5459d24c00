"""Snappy as Kafka's clients write it.

Java clients use the stream of the xerial library: sixteen bytes of header, then blocks, each a
length and a raw snappy block of up to 32 KB of data. librdkafka writes one raw block without any of
that. Readers tell the two apart by the first eight bytes.

A raw block starts with the length it decompresses to. The densest snappy element makes 64 bytes of
three, so a block that claims more than that ratio lies, and nothing is allocated for it.
"""

import struct

import cramjam

from headwater.wire.records.errors import CorruptRecordError, DecompressedTooLargeError
from headwater.wire.records.record import Buffer

MAGIC = b"\x82SNAPPY\x00"
BLOCK_BYTES = 32 << 10

#: The magic, the version of the writer, and the oldest version that can read it.
_HEADER = MAGIC + struct.pack(">ii", 1, 1)
_LENGTH = struct.Struct(">i")
_EXPANSION_NUMERATOR = 64
_EXPANSION_DENOMINATOR = 3


def compress(data: Buffer) -> bytes:
    """`data` in xerial's framing."""
    view = memoryview(data)
    pieces = [_HEADER]
    for start in range(0, len(view), BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + BLOCK_BYTES]))
        pieces.append(_LENGTH.pack(len(block)))
        pieces.append(block)
    return b"".join(pieces)


def decompress(data: Buffer, max_bytes: int) -> bytes:
    """The content of a xerial stream or of one raw block."""
    view = memoryview(data)
    if view[: len(MAGIC)] != MAGIC:
        return _decompress_block(view, max_bytes, max_bytes)
    if len(view) < len(_HEADER):
        raise CorruptRecordError("The snappy stream is cut short in its header.")
    pieces: list[bytes] = []
    left = max_bytes
    position = len(_HEADER)
    while position < len(view):
        block_position = position + _LENGTH.size
        if block_position > len(view):
            raise CorruptRecordError("The snappy stream is cut short in a block's length.")
        (length,) = _LENGTH.unpack_from(view, position)
        position = block_position + length
        if length <= 0 or position > len(view):
            raise CorruptRecordError(
                f"A snappy block claims {length} bytes, of which "
                f"{len(view) - block_position} are there."
            )
        piece = _decompress_block(view[block_position:position], left, max_bytes)
        left -= len(piece)
        pieces.append(piece)
    return b"".join(pieces)


def _decompress_block(block: memoryview, left: int, max_bytes: int) -> bytes:
    try:
        claimed = cramjam.snappy.decompress_raw_len(block)
        if claimed * _EXPANSION_DENOMINATOR > len(block) * _EXPANSION_NUMERATOR:
            raise CorruptRecordError(
                f"A snappy block of {len(block)} bytes cannot hold the {claimed} that it claims."
            )
        if claimed > left:
            raise DecompressedTooLargeError.beyond(max_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"A snappy block is damaged: {error}.") from error
