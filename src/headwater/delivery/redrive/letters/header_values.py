"""Values of headers that somebody else wrote: text or numbers, and nothing raises.

Spring writes partitions, offsets and times as Java's integers, four or eight bytes with the highest
first; all others write digits. Four digits are also four bytes, but the number that they would be
as an integer is beyond any partition or count, so digits are always taken for digits.
"""

from __future__ import annotations

from typing import Final

from headwater.base.durations import LONG_MAX
from headwater.base.message_id import MessageId

_INT_MAX: Final = 2**31 - 1
_DIGITS_MAX: Final = 19
_JAVA_SIZES: Final = (4, 8)


def text_of(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def number_of(value: bytes | None) -> int | None:
    """The number, of 63 bits at most; None if there is none."""
    if value is None:
        return None
    if value.isdigit():
        number = int(value) if len(value) <= _DIGITS_MAX else -1
    elif len(value) in _JAVA_SIZES:
        number = int.from_bytes(value, "big", signed=True)
    else:
        return None
    return number if 0 <= number <= LONG_MAX else None


def big_number_of(value: bytes | None) -> int | None:
    """The same, where an integer may also have only as many bytes as it needs."""
    number = number_of(value)
    if number is not None or not value or value.isdigit() or len(value) >= max(_JAVA_SIZES):
        return number
    number = int.from_bytes(value, "big", signed=True)
    return number if number >= 0 else None


def place_of(
    topic: bytes | None, partition: bytes | None, offset: bytes | None
) -> MessageId | None:
    """The place that three headers name, if all of them make sense."""
    name, number, at = text_of(topic), number_of(partition), number_of(offset)
    if not name or number is None or number > _INT_MAX or at is None:
        return None
    return MessageId(name, number, at)


def parsed_place(value: bytes | None) -> MessageId | None:
    """The place that one header names."""
    if value is None:
        return None
    try:
        return MessageId.parse(value.decode("ascii", "replace"))
    except ValueError:
        return None
