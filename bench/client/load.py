"""What one run of a client is asked to do, and how it counts what it did.

Every client gets the same records in the same order: a thousand different values, and if there are
keys ten thousand different ones, made before the clock starts. A run goes on until its time is
over, or until there is nothing more to read; what was sent until then must be acknowledged before
the clock stops.
"""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass
from typing import Any

from bench.machine import resident_bytes_max

#: The clock is looked at once in so many records.
CHUNK_COUNT = 1_000
KEY_COUNT = 10_000
POLLED_COUNT_MAX = 10_000
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Load:
    bootstrap: str
    topic: str
    partition_count: int
    record_size_bytes: int
    is_keyed: bool
    #: "all", with idempotence, or "1", without.
    acks: str
    #: The same batch size and linger for everyone, in place of each client's own.
    is_tuned: bool
    run_s: float
    #: How many there are to be read.
    record_count: int = 0

    @property
    def is_idempotent(self) -> bool:
        return self.acks == "all"

    def values(self) -> list[bytes]:
        generator = random.Random(5)
        return [generator.randbytes(self.record_size_bytes) for _ in range(CHUNK_COUNT)]

    def keyed_chunks(self) -> list[list[tuple[bytes, bytes]]]:
        """Pairs of key and value, a chunk of values at a time, until each key was there once."""
        values = self.values()
        keys = [b"key-%06d" % number for number in range(KEY_COUNT)]
        return [
            list(zip(keys[first : first + CHUNK_COUNT], values, strict=True))
            for first in range(0, KEY_COUNT, CHUNK_COUNT)
        ]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


#: What a tuned producer gathers, and for how long it waits.
TUNED_BATCH_BYTES = 65_536
TUNED_LINGER_MS = 10


class Stopwatch:
    """Starts when it is made."""

    def __init__(self, load: Load) -> None:
        self._cpu_start_s = time.process_time()
        self._start_s = time.perf_counter()
        self._end_s = self._start_s + load.run_s

    def is_over(self) -> bool:
        return time.perf_counter() >= self._end_s

    def result(self, record_count: int) -> dict[str, float]:
        """What the run came to, now that all of it is done."""
        seconds = time.perf_counter() - self._start_s
        return {
            "record_count": record_count,
            "seconds": seconds,
            "cpu_s": time.process_time() - self._cpu_start_s,
            "resident_bytes": resident_bytes_max(),
        }


class TooFewRecords(Exception):
    """Records that lie on the broker did not come."""

    def __init__(self, count: int) -> None:
        super().__init__(f"only {count} records came within {WAIT_S:g} s")
