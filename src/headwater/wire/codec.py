"""Messages to bytes and back, in any version, by functions that are compiled when first needed.

`decode` is safe to give bytes from anywhere. Whatever is wrong with them, it raises
`MalformedMessageError` and nothing else, and what it allocates is in proportion to the bytes: no
array is longer than the bytes that are left, and all arrays of a message together have no more
elements than `reader_source` allows. Tagged fields that the schema does not know are skipped, and
error codes are plain numbers, known or not. Bytes after the message are the caller's business.

A field that a version does not have is at its default after decoding, and is ignored in encoding.
"""

import struct
from typing import Final, TypeVar

from headwater.base.errors import UnsupportedVersionError
from headwater.base.region import Buffer, Part, Region
from headwater.wire.reader_source import MalformedMessageError, Reader, compile_reader
from headwater.wire.schema import Message
from headwater.wire.writer_source import Writer, compile_writer

__all__ = (
    "Buffer",
    "MalformedMessageError",
    "Part",
    "Region",
    "UnencodableMessageError",
    "decode",
    "encode",
    "encode_parts",
    "encode_pieces",
)

# How much of a message an error shows; it may hold megabytes of records.
MESSAGE_SHOWN_LENGTH_MAX: Final = 500

MessageType = TypeVar("MessageType", bound=Message)

_READERS: dict[tuple[type[Message], int], Reader] = {}
_WRITERS: dict[tuple[type[Message], int], Writer] = {}


class UnencodableMessageError(ValueError):
    """A message of ours holds a value that its version has no way to write: our own mistake."""


def decode(
    message_class: type[MessageType],
    buffer: Buffer,
    version: int,
    position: int = 0,
    end: int | None = None,
) -> tuple[MessageType, int]:
    """The message that starts at `position`, and the position after it.

    Its `records` are slices of `buffer` in a memoryview; everything else is copied.
    """
    reader = _READERS.get((message_class, version)) or _new_reader(message_class, version)
    try:
        return reader(buffer, position, end)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessageError(
            f"These bytes are no {message_class.__name__} of version {version}: {error}."
        ) from error


def encode(message: Message, version: int) -> bytes:
    """The message as bytes; it must not hold a `Region`."""
    pieces: list[bytes] = []
    parts: list[Part] = []
    _write(message, version, pieces, parts)
    if not parts:
        return b"".join(pieces)
    buffers = [part for part in parts if isinstance(part, (bytes, bytearray, memoryview))]
    if len(buffers) < len(parts):
        raise UnencodableMessageError(f"A {type(message).__name__} holds a region of a file.")
    return b"".join([*buffers, *pieces])


def encode_parts(message: Message, version: int) -> list[Part]:
    """The message as bytes with the regions that it holds between them, which are not copied."""
    parts, pieces = encode_pieces(message, version)
    if pieces or not parts:
        parts.append(b"".join(pieces))
    return parts


def encode_pieces(message: Message, version: int) -> tuple[list[Part], list[bytes]]:
    """The same, with what follows the last region in pieces: who joins them copies records once."""
    pieces: list[bytes] = []
    parts: list[Part] = []
    _write(message, version, pieces, parts)
    return parts, pieces


def _write(message: Message, version: int, pieces: list[bytes], parts: list[Part]) -> None:
    message_class = type(message)
    writer = _WRITERS.get((message_class, version)) or _new_writer(message_class, version)
    try:
        writer(message, pieces, parts)
    except (struct.error, TypeError, AttributeError) as error:
        shown = repr(message)[:MESSAGE_SHOWN_LENGTH_MAX]
        raise UnencodableMessageError(
            f"Version {version} cannot hold this message: {error}: {shown}"
        ) from error


def _new_reader(message_class: type[Message], version: int) -> Reader:
    _check_version(message_class, version)
    reader = compile_reader(message_class, version)
    _READERS[message_class, version] = reader
    return reader


def _new_writer(message_class: type[Message], version: int) -> Writer:
    _check_version(message_class, version)
    writer = compile_writer(message_class, version)
    _WRITERS[message_class, version] = writer
    return writer


def _check_version(message_class: type[Message], version: int) -> None:
    if version not in message_class.VERSIONS:
        raise UnsupportedVersionError(f"{message_class.__name__} has no version {version}.")
