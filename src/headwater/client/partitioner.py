"""Which partition a record goes to: by its key as Java's client does it, or batch after batch.

Every Kafka client that hashes like Java's sends a key to the same partition, so records that one
wrote can be joined or compacted with those of another: the hash is murmur2 with Java's seed, made
positive by dropping its sign bit, modulo the number of partitions. Hashing in Python costs
microseconds, so the hashes of keys that were seen lately are remembered.

A record without a key goes where the last one went, until that partition's batch is full and
another is drawn: records spread evenly, and batches are as large as they can be.
"""

import random
import struct
from collections.abc import Sequence
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


class StickyPartitions:
    """The partition of each topic that records without a key go to at the moment."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self._current: dict[str, int] = {}

    def current(self, topic: str, candidates: Sequence[int]) -> int:
        """One of `candidates`, the same as long as it is one and nobody moves on."""
        partition = self._current.get(topic)
        if partition is None or partition not in candidates:
            partition = self._draw(topic, candidates)
        return partition

    def move_on(self, topic: str, partition: int, candidates: Sequence[int]) -> None:
        """Draw another one, unless records go elsewhere than to `partition` already."""
        if self._current.get(topic) == partition:
            others = [candidate for candidate in candidates if candidate != partition]
            self._draw(topic, others or candidates)

    def _draw(self, topic: str, candidates: Sequence[int]) -> int:
        partition = self._generator.choice(candidates)
        self._current[topic] = partition
        return partition
