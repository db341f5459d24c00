"""The last offset of each key in the dirty part of a log, within a fixed amount of memory.

Compaction keeps a record if no later one has its key, so it must first learn where each key was
last seen. The map does not keep keys but 128 bits of hash, so an entry has the same size whatever
the keys are: 24 bytes, as in Kafka's map. When it is full, compaction ends its pass there, and the
next pass goes on behind that. More keys in the same memory mean fewer passes, and each pass
rewrites the whole log up to its end: that is why compactness counts for more than speed.

What it is made of was measured with a million 20-byte keys:

    a dict of 16-byte digests       165 bytes a key, 1.6 us to put, 1.5 us to find
    three arrays, half full          48 bytes a key, 1.9 us,        1.3 us
    three arrays, nine tenths full   27 bytes a key, 2.2 us,        1.8 us

Hence the arrays: open addressing, with a second hash for the step, so that looking for a key that
is not there stays cheap when the table is nearly full.

The hash is Python's own for bytes, a SipHash with a key that the process drew at random, taken of
the key and of the key with a byte behind it: two independent 64-bit values, in a quarter of the
time of an MD5. Two keys with equal hashes would be taken for one and the older record lost: with
five million keys in the map the odds of that are one to 10^25.
"""

from __future__ import annotations

import sys
from array import array

from headwater.base.checks import check

ENTRY_BYTES = 24
LOAD_FACTOR = 0.9
NOT_FOUND = -1


class OffsetMap:
    """Keys to offsets; `key_count_expected` only keeps a table small that need not be large."""

    def __init__(
        self,
        memory_bytes: int,
        load_factor: float = LOAD_FACTOR,
        *,
        key_count_expected: int | None = None,
    ) -> None:
        check(sys.hash_info.width >= 64, "hashes of %d bits are too short", sys.hash_info.width)
        slot_count = memory_bytes // ENTRY_BYTES
        check(
            slot_count >= 2 and slot_count * load_factor >= 1,
            "%d bytes filled to %s do not hold a single key",
            memory_bytes,
            load_factor,
        )
        if key_count_expected is not None:
            # Half empty if all keys come, for the memory is there anyway.
            slot_count = min(slot_count, max(2 * key_count_expected, 16))
        self._slot_count = slot_count = _prime_at_most(slot_count)
        self.key_count_max = max(1, min(int(slot_count * load_factor), slot_count - 1))
        self.key_count = 0
        #: Every record up to here is accounted for; compaction decides on nothing beyond it.
        self.latest_offset = NOT_FOUND
        # A slot is empty if its first hash is 0, which no key has.
        self._hashes = array("q", (0,)) * slot_count
        self._second_hashes = array("q", (0,)) * slot_count
        self._offsets = array("q", (0,)) * slot_count

    @property
    def utilization(self) -> float:
        return self.key_count / self._slot_count

    @property
    def memory_bytes(self) -> int:
        return self._slot_count * ENTRY_BYTES

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was seen at `offset`; False if it is new and there is no room for it."""
        first = hash(key) or 1
        second = hash(key + b"\0")
        slot = first % self._slot_count
        found = self._hashes[slot]
        if found and (found != first or self._second_hashes[slot] != second):
            slot = self._slot_of(first, second)
            found = self._hashes[slot]
        if not found:
            if self.key_count >= self.key_count_max:
                return False
            self._hashes[slot] = first
            self._second_hashes[slot] = second
            self.key_count += 1
        self._offsets[slot] = offset
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """The last offset of `key`, `NOT_FOUND` if the map does not have it."""
        first = hash(key) or 1
        slot = first % self._slot_count
        found = self._hashes[slot]
        if not found:
            return NOT_FOUND
        second = hash(key + b"\0")
        if found != first or self._second_hashes[slot] != second:
            slot = self._slot_of(first, second)
            if not self._hashes[slot]:
                return NOT_FOUND
        return self._offsets[slot]

    def advance_to(self, offset: int) -> None:
        """All up to `offset` is accounted for, although nothing of it went into the map."""
        self.latest_offset = max(self.latest_offset, offset)

    def _slot_of(self, first: int, second: int) -> int:
        """Where a key is that is not in its first slot, or the empty slot where it would be."""
        hashes = self._hashes
        slot_count = self._slot_count
        slot = first % slot_count
        # The slot count is prime, so any step leads past every slot, and at least one is empty.
        step = 1 + first // slot_count % (slot_count - 1)
        while True:
            slot += step
            if slot >= slot_count:
                slot -= slot_count
            found = hashes[slot]
            if not found or (found == first and self._second_hashes[slot] == second):
                return slot


def _prime_at_most(number: int) -> int:
    """The largest prime that is not larger; `number` is at least 2."""
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
