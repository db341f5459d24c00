"""Which partition of an internal topic a group or a transactional id belongs to.

All brokers and clients must agree on it, so it is Java's hash of a string, which Kafka uses: over
the string's UTF-16 code units, in 32 bits.
"""

from __future__ import annotations

import struct
from typing import Final

_SMALLEST: Final = -(2**31)


def java_string_hash(text: str) -> int:
    """What Java's `String.hashCode` gives, as a signed 32-bit number."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", encoded):
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value & 0x8000_0000 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition that is the home of a group or a transactional id."""
    value = java_string_hash(key)
    # The smallest number has no counterpart among 32-bit ones: it counts as 0.
    return 0 if value == _SMALLEST else abs(value) % partition_count
