"""Kafka's variable-length integers: zigzag, then seven bits a byte, lowest first.

Zigzag puts the sign into the lowest bit (0, -1, 1, -2 become 0, 1, 2, 3), so small numbers of
either sign are short. A 32-bit number takes at most five bytes and a 64-bit one ten; a reader that
would go on along continuation bits, or take a number that does not fit, stops with an error there.
The record reader inlines the one- and two-byte cases and comes here for the rest.
"""

from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record import Buffer

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10


def encode_varint(value: int) -> bytes:
    """`value` as a 32-bit variable-length integer."""
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise InvalidRecordError(f"{value} does not fit a 32-bit number.")
    return _encode_raw((value << 1) ^ (value >> 31))


def encode_varlong(value: int) -> bytes:
    """`value` as a 64-bit variable-length integer."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise InvalidRecordError(f"{value} does not fit a 64-bit number.")
    return _encode_raw((value << 1) ^ (value >> 63))


def _encode_raw(raw: int) -> bytes:
    encoded = bytearray()
    while raw > 0x7F:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


def read_raw_varint(
    data: Buffer, position: int, bytes_max: int = VARINT_BYTES_MAX
) -> tuple[int, int]:
    """The number at `position` still in zigzag form, and the position after it."""
    raw = 0
    for index, byte in enumerate(data[position : position + bytes_max]):
        raw |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if raw >> (32 if bytes_max == VARINT_BYTES_MAX else 64):
                raise CorruptRecordError(
                    f"The variable-length number at byte {position} of the records is too large."
                )
            return raw, position + index + 1
    if len(data) - position < bytes_max:
        raise CorruptRecordError("The records end inside a variable-length number.")
    raise CorruptRecordError(
        f"The variable-length number at byte {position} of the records is longer than "
        f"{bytes_max} bytes."
    )


def unzigzag(raw: int) -> int:
    """The signed number that a zigzag form stands for."""
    return (raw >> 1) ^ -(raw & 1)


#: Lengths and deltas of most records are below this, and a list look-up beats any arithmetic.
SMALL_LIMIT = 1 << 13
SMALL_VARINTS: list[bytes] = [bytes((raw,)) for raw in range(0, 0x80, 2)]
SMALL_VARINTS += [bytes((raw & 0x7F | 0x80, raw >> 7)) for raw in range(0x80, 2 * SMALL_LIMIT, 2)]
