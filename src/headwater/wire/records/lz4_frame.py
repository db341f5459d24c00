"""LZ4 frames as Kafka's clients write them, and the broken ones of the first message format.

A frame starts with its magic number and a descriptor of 2 to 14 bytes that ends in a checksum: the
second byte of the descriptor's XXH32. The first Java clients hashed the magic number as well.
Brokers of that time expect this in messages of magic 0, which therefore still carry it: a reader
must not check it there, which is done by putting the right one in its place. Newer formats have the
standard checksum. Java's reader knows only independent blocks, so nothing else is written.
"""

import lz4.frame

from headwater.wire.records.errors import CorruptRecordError, DecompressedTooLargeError
from headwater.wire.records.record import Buffer

MAGIC = b"\x04\x22\x4d\x18"

_CONTENT_SIZE_FLAG = 0x08
_DICTIONARY_FLAG = 0x01
_LEVEL_MAX = 16

#: How much is decompressed at a time: enough for most batches, little enough to throw away.
_STEP_BYTES_MIN = 64 << 10
_STEP_BYTES_MAX = 1 << 20
_STEP_EXPANSION = 4

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    0x9E3779B1,
    0x85EBCA77,
    0xC2B2AE3D,
    0x27D4EB2F,
    0x165667B1,
)
_MASK = 0xFFFF_FFFF


def compress(data: Buffer, level: int | None = None) -> bytes:
    """One frame of independent blocks; a level above 2 takes the slow, dense compressor."""
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None else min(level, _LEVEL_MAX),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return frame


def decompress(data: Buffer, max_bytes: int) -> bytes:
    """The content of exactly one frame."""
    view = memoryview(data)
    context = lz4.frame.create_decompression_context()
    step_bytes = min(max(_STEP_BYTES_MIN, _STEP_EXPANSION * len(view)), _STEP_BYTES_MAX)
    pieces: list[bytes] = []
    left = max_bytes
    ended = False
    while not ended:
        try:
            piece, consumed, ended = lz4.frame.decompress_chunk(
                context, view, max_length=min(step_bytes, left + 1)
            )
        except RuntimeError as error:
            raise CorruptRecordError(f"The lz4 frame is damaged: {error}.") from error
        if not (piece or consumed):
            raise CorruptRecordError("The lz4 frame is cut short.")
        left -= len(piece)
        if left < 0:
            raise DecompressedTooLargeError.beyond(max_bytes)
        pieces.append(piece)
        view = view[consumed:]
    if len(view):
        raise CorruptRecordError(f"{len(view)} bytes follow the lz4 frame.")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def with_standard_checksum(frame: Buffer) -> bytes:
    """The frame with the descriptor checksum that the standard asks for, whatever it had."""
    end = _descriptor_end(frame)
    checksum = _checksum(bytes(frame[len(MAGIC) : end]))
    return b"".join((frame[:end], bytes((checksum,)), frame[end + 1 :]))


def with_magic_0_checksum(frame: Buffer) -> bytes:
    """The frame with the checksum that readers of magic 0 expect: it covers the magic number."""
    end = _descriptor_end(frame)
    return b"".join((frame[:end], bytes((_checksum(bytes(frame[:end])),)), frame[end + 1 :]))


def _descriptor_end(frame: Buffer) -> int:
    if bytes(frame[: len(MAGIC)]) != MAGIC or len(frame) <= len(MAGIC):
        raise CorruptRecordError("The lz4 frame has no magic number.")
    flags = frame[len(MAGIC)]
    end = len(MAGIC) + 2
    if flags & _CONTENT_SIZE_FLAG:
        end += 8
    if flags & _DICTIONARY_FLAG:
        end += 4
    if end >= len(frame):
        raise CorruptRecordError("The lz4 frame is cut short in its header.")
    return end


def _checksum(descriptor: bytes) -> int:
    """Byte 1 of XXH32 with seed 0, for the inputs of less than 16 bytes that occur here."""
    whole = len(descriptor) & ~3
    digest = (_PRIME_5 + len(descriptor)) & _MASK
    for position in range(0, whole, 4):
        lane = int.from_bytes(descriptor[position : position + 4], "little")
        digest = _rotate_left(digest + lane * _PRIME_3, 17) * _PRIME_4 & _MASK
    for byte in descriptor[whole:]:
        digest = _rotate_left(digest + byte * _PRIME_5, 11) * _PRIME_1 & _MASK
    digest = (digest ^ digest >> 15) * _PRIME_2 & _MASK
    digest = (digest ^ digest >> 13) * _PRIME_3 & _MASK
    return (digest ^ digest >> 16) >> 8 & 0xFF


def _rotate_left(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 32 - bits) & _MASK
