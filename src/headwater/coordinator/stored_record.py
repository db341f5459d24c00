"""Records of internal topics: a key and a value, each a message behind its version.

The version of a key tells what kind of record it is; the version of a value, how it is written. No
value means that what the key names is gone, and compaction forgets it in time.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeVar

from headwater.base.region import Buffer
from headwater.wire.codec import MalformedMessageError, decode, encode
from headwater.wire.schema import Message

_VERSION = struct.Struct(">h")

T = TypeVar("T", bound=Message)


class StoredRecord(NamedTuple):
    """What a coordinator writes: bytes of a key, and of a value or None for a tombstone."""

    key: bytes
    value: bytes | None


def encode_versioned(message: Message, version: int) -> bytes:
    """A message with its version in front."""
    return _VERSION.pack(version) + encode(message, version)


def read_version(buffer: Buffer) -> int:
    """The version in front of a key or a value; raises `MalformedMessageError`."""
    if len(buffer) < _VERSION.size:
        raise MalformedMessageError("A stored key or value has no version.")
    version: int = _VERSION.unpack_from(buffer)[0]
    return version


def decode_versioned(message_class: type[T], buffer: Buffer) -> T:
    """The message behind its version; raises `MalformedMessageError`."""
    version = read_version(buffer)
    if version not in message_class.VERSIONS:
        raise MalformedMessageError(
            f"{message_class.__name__} has no version {version}, only "
            f"{message_class.VERSIONS.lowest} to {message_class.VERSIONS.highest}."
        )
    message, _ = decode(message_class, buffer, version, _VERSION.size)
    return message
