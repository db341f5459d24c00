"""How much is measured: full for the record, quick for a look, tiny for tests."""

from __future__ import annotations

from dataclasses import dataclass

PARTITION_COUNT = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    #: Beside a plain consumer: rounds, the records of each by their size in bytes, how many of them
    #: where several are handled at a time, and how many where handlers wait.
    rounds: int
    read_counts: dict[int, int]
    lane_count: int
    waiting_count: int
    #: How many records a second come while a tenth of them fails, for how long, and how often.
    rate_per_s: int
    failing_s: float
    failing_rounds: int
    #: Dead letters that are sent back.
    letter_count: int


FULL = Sizes(
    rounds=9,
    read_counts={100: 2_000_000, 1_000: 1_000_000},
    lane_count=300_000,
    waiting_count=10_000,
    rate_per_s=20_000,
    failing_s=30.0,
    failing_rounds=3,
    letter_count=1_000_000,
)
QUICK = Sizes(
    rounds=3,
    read_counts={100: 400_000, 1_000: 200_000},
    lane_count=60_000,
    waiting_count=2_000,
    rate_per_s=20_000,
    failing_s=8.0,
    failing_rounds=1,
    letter_count=100_000,
)
TINY = Sizes(
    rounds=1,
    read_counts={100: 2_000},
    lane_count=500,
    waiting_count=50,
    rate_per_s=500,
    failing_s=1.0,
    failing_rounds=1,
    letter_count=500,
)
