"""Which partition a record goes to by its key, as Java's client does it.

Every Kafka client that hashes like Java's sends a key to the same partition, so records that one
wrote can be joined or compacted with those of another: the hash is murmur2 with Java's seed, made
positive by dropping its sign bit, modulo the number of partitions. Hashing in Python costs
microseconds, so the hashes of keys that were seen lately are remembered.
"""

import struct
from functools import lru_cache
from typing import Final

SEED: Final = 0x9747_B28C
REMEMBERED_KEYS_MAX: Final = 16_384
#: Long keys are hardly ever repeated, and would make the memory of hashes a large one.
REMEMBERED_KEY_SIZE_MAX: Final = 64

_MULTIPLIER: Final = 0x5BD1_E995
_MASK: Final = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash, unsigned."""
    length = len(data)
    hashed = SEED ^ length
    word_count = length >> 2
    for word in struct.unpack_from(f"<{word_count}I", data):
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ word
    rest = data[word_count << 2 :]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


_remembered_hash = lru_cache(maxsize=REMEMBERED_KEYS_MAX)(murmur2)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Where Java's client would send a record with this key."""
    hashed = _remembered_hash(key) if len(key) <= REMEMBERED_KEY_SIZE_MAX else murmur2(key)
    return (hashed & 0x7FFF_FFFF) % partition_count
