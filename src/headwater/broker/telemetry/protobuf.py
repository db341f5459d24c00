"""Protobuf's bytes, as far as one message needs them: read field by field, and a few written.

A reader that strangers talk to, so it trusts nothing: lengths are checked against what is left, and
a `Budget` bounds how many fields all levels of a message have together. That is what the time and
the memory of reading depend on. Whatever the bytes are, the one thing raised is `ProtobufError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

#: Wire types. Groups (3 and 4) are older than anything that is read here.
VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

_VARINT_BYTES_MAX: Final = 10
_UINT64_MAX: Final = (1 << 64) - 1
_INT64: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
_WIDTHS: Final = {FIXED64: 8, FIXED32: 4}

#: The number of a field, its wire type, and what it holds: a number if it is a varint, else bytes.
Field = tuple[int, int, int | memoryview]


class ProtobufError(Exception):
    """These bytes are no such message; the text is a sentence."""


class Budget:
    """How many fields may still be read."""

    def __init__(self, fields_max: int) -> None:
        self.left = fields_max


def fields(data: memoryview, budget: Budget) -> Iterator[Field]:
    """The fields of one message, in their order."""
    position, end = 0, len(data)
    while position < end:
        budget.left -= 1
        if budget.left < 0:
            raise ProtobufError("The message has more fields than are read here.")
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise ProtobufError(f"There is no field with the number {number}.")
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            length, position = _varint(data, position)
        elif wire_type in _WIDTHS:
            length = _WIDTHS[wire_type]
        else:
            raise ProtobufError(f"Fields of wire type {wire_type} are not read here.")
        if length > end - position:
            raise ProtobufError(
                f"A field claims {length} bytes, of which {end - position} are there."
            )
        yield number, wire_type, data[position : position + length]
        position += length


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[position : position + _VARINT_BYTES_MAX]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64_MAX, position
        shift += 7
    raise ProtobufError("A number is cut short, or too long.")


# -- what a field holds ----------------------------------------------------------------------------


def signed(value: int) -> int:
    """A varint as an int64."""
    return value - (1 << 64) if value >> 63 else value


def fixed_int(value: memoryview) -> int:
    """Eight bytes as a whole number with a sign."""
    number: int
    (number,) = _INT64.unpack(value)
    return number


def double(value: memoryview) -> float:
    """Eight bytes as a floating point number."""
    number: float
    (number,) = _DOUBLE.unpack(value)
    return number


def text(value: memoryview) -> str:
    """Bytes as UTF-8."""
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise ProtobufError("A text is not UTF-8.") from None


# -- writing ---------------------------------------------------------------------------------------


def bytes_field(number: int, value: bytes | memoryview) -> bytes:
    """A field that holds bytes, a text or a message."""
    return b"".join((varint(number << 3 | BYTES), varint(len(value)), value))


def varint(value: int) -> bytes:
    """A number that is not negative, seven bits a byte."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
