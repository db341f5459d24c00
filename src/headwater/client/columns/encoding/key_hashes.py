"""Murmur2 of many keys at once, and the partitions that it gives them.

The same hash as `partitioner.murmur2`, which Java's client uses: the words of all keys are mixed in
level by level, the first word of every key, then the second of every key that has two, and so on.
A long key would make many levels for itself alone, so it is hashed alone.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from headwater.client.columns.varint_arrays import Bytes, Longs
from headwater.client.partitioner import SEED, murmur2

_LONG_KEY_BYTES: Final = 512

_MULTIPLIER: Final = np.uint32(0x5BD1_E995)

_Hashes = npt.NDArray[np.uint32]


def partitions_of(hashes: _Hashes, partition_count: int) -> Longs:
    """Where Java's client would send records whose keys have these hashes."""
    return (hashes & np.uint32(0x7FFF_FFFF)).astype(np.int64) % partition_count


def murmur2_of_fields(data: Bytes, starts: Longs, sizes: Longs) -> _Hashes:
    """The hash of each field of `data`; the fields lie within it, and none is null."""
    hashes = np.uint32(SEED) ^ sizes.astype(np.uint32)
    if not data.size:
        # All fields are empty, and there is not even a byte to look at instead of theirs.
        data = np.zeros(1, np.uint8)
    active: slice | Longs = slice(None)
    largest = int(sizes.max()) if len(sizes) else 0
    for level_end in range(4, min(largest, _LONG_KEY_BYTES) + 1, 4):
        if isinstance(active, slice):
            if not (sizes >= level_end).all():
                active = np.flatnonzero(sizes >= level_end)
        else:
            active = active[sizes[active] >= level_end]
        word = _words(data, starts[active] + (level_end - 4), 4) * _MULTIPLIER
        word = (word ^ (word >> np.uint32(24))) * _MULTIPLIER
        hashes[active] = hashes[active] * _MULTIPLIER ^ word
    rest_sizes = sizes & 3
    rest = _words(data, starts + (sizes - rest_sizes), 3)
    rest &= (np.uint32(1) << (rest_sizes << 3).astype(np.uint32)) - np.uint32(1)
    hashes = np.where(rest_sizes > 0, (hashes ^ rest) * _MULTIPLIER, hashes)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    if largest > _LONG_KEY_BYTES:
        for index in np.flatnonzero(sizes > _LONG_KEY_BYTES).tolist():
            start, size = int(starts[index]), int(sizes[index])
            hashes[index] = murmur2(data[start : start + size].tobytes())
    return hashes


def _words(data: Bytes, positions: Longs, byte_count: int) -> _Hashes:
    """The little-endian number at each position; bytes beyond the data are any."""
    word = data.take(positions, mode="clip").astype(np.uint32)
    for index in range(1, byte_count):
        byte = data.take(positions + index, mode="clip").astype(np.uint32)
        word |= byte << np.uint32(8 * index)
    return word
