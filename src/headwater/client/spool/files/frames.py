"""How a spool's file is made of frames that show by themselves whether they are whole.

A file begins with a header that names the format's version; then frames follow without gaps: the
size of the content (uint32), its CRC-32C (uint32), the content. The checksum begins with the
frame's number, so that bytes which an earlier use of the disk left behind are no valid frame
here. Whatever a crash tore, the frames before the first invalid one are what counts.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from headwater.client.spool.errors import SpoolVersionError

_FILE_HEADER = struct.Struct(">4sHHI")
_FRAME_HEAD = struct.Struct(">II")
_NUMBER = struct.Struct(">Q")
_MAGIC = b"HWSP"
VERSION = 1

FILE_HEADER_SIZE = _FILE_HEADER.size
FRAME_OVERHEAD = _FRAME_HEAD.size


def encode_file_header() -> bytes:
    return _FILE_HEADER.pack(_MAGIC, VERSION, 0, crc32c(_MAGIC + VERSION.to_bytes(2, "big")))


def check_file_header(data: bytes, path: str) -> bool:
    """Whether the header is whole; raises if it is, but of a version that is not known here."""
    if len(data) < FILE_HEADER_SIZE:
        return False
    magic, version, _, checksum = _FILE_HEADER.unpack_from(data)
    if magic != _MAGIC or checksum != crc32c(magic + version.to_bytes(2, "big")):
        return False
    if version != VERSION:
        raise SpoolVersionError(
            f"{path} has version {version} of the spool's format, but this version of Headwater"
            f" reads version {VERSION}."
        )
    return True


def encode_frame(number: int, content: bytes) -> bytes:
    return _FRAME_HEAD.pack(len(content), _checksum(number, content)) + content


class Frame(NamedTuple):
    number: int
    content: bytes


class ScannedFrames(NamedTuple):
    frames: list[Frame]
    #: How many bytes they took; what follows is invalid, incomplete, or nothing.
    size_bytes: int
    #: How many bytes the next frame would need to be complete, as far as its head is to be trusted.
    needed_bytes: int


def scan_frames(data: bytes, first_number: int, *, content_size_min: int = 1) -> ScannedFrames:
    """The valid frames at the beginning of `data`."""
    frames: list[Frame] = []
    position, number, end = 0, first_number, len(data)
    needed_bytes = FRAME_OVERHEAD
    while position + FRAME_OVERHEAD <= end:
        size, checksum = _FRAME_HEAD.unpack_from(data, position)
        if size < content_size_min:
            break
        content_end = position + FRAME_OVERHEAD + size
        if content_end > end:
            needed_bytes = FRAME_OVERHEAD + size
            break
        content = data[position + FRAME_OVERHEAD : content_end]
        if _checksum(number, content) != checksum:
            break
        frames.append(Frame(number, content))
        position = content_end
        number += 1
    return ScannedFrames(frames, position, needed_bytes)


def _checksum(number: int, content: bytes) -> int:
    return crc32c(content, crc32c(_NUMBER.pack(number)))
