"""How much each measurement does. Full is for the record, quick for a look, tiny for tests."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class Sizes:
    #: Turns that each side of a comparison takes.
    round_count: int
    #: How much is written before files are thrown away, and how long the log is that is read.
    stream_bytes: int
    #: The segment that offsets are found in, and the log that is recovered.
    segment_bytes: int
    lookup_count: int
    recovery_count: int
    #: In one round.
    small_append_count: int
    #: Bytes written at the first and at the second look at memory.
    memory_bytes: tuple[int, int]
    partition_count: int
    waiter_count: int
    waiter_append_count: int
    compaction_bytes: int


FULL = Sizes(
    round_count=60,
    stream_bytes=256 * MEGABYTE,
    segment_bytes=GIGABYTE,
    lookup_count=50_000,
    recovery_count=5,
    small_append_count=2_000,
    memory_bytes=(200 * MEGABYTE, 2 * GIGABYTE),
    partition_count=10_000,
    waiter_count=64,
    waiter_append_count=30,
    compaction_bytes=256 * MEGABYTE,
)
QUICK = Sizes(
    round_count=32,
    stream_bytes=128 * MEGABYTE,
    segment_bytes=GIGABYTE,
    lookup_count=5_000,
    recovery_count=2,
    small_append_count=1_000,
    memory_bytes=(100 * MEGABYTE, 500 * MEGABYTE),
    partition_count=400,
    waiter_count=64,
    waiter_append_count=5,
    compaction_bytes=32 * MEGABYTE,
)
TINY = Sizes(
    round_count=2,
    stream_bytes=2 * MEGABYTE,
    segment_bytes=2 * MEGABYTE,
    lookup_count=50,
    recovery_count=1,
    small_append_count=50,
    memory_bytes=(MEGABYTE, 2 * MEGABYTE),
    partition_count=20,
    waiter_count=4,
    waiter_append_count=2,
    compaction_bytes=MEGABYTE // 4,
)


def size_text(size_bytes: int) -> str:
    """ "1 GB" where it is 2^30, as Kafka's documentation has it."""
    if size_bytes >= GIGABYTE:
        return f"{size_bytes / GIGABYTE:g} GB"
    return f"{size_bytes / MEGABYTE:g} MB"
