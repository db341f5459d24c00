"""How much is measured: full for the record, quick for a look, tiny for tests."""

from __future__ import annotations

from dataclasses import dataclass

PARTITION_COUNT = 4
RECORD_SIZE_BYTES = 100


@dataclass(frozen=True, slots=True)
class Sizes:
    #: In one process: appends in a round, and rounds.
    append_count: int
    append_rounds: int
    #: From end to end: rounds, and the records of each.
    rounds: int
    record_count: int
    #: Among how many records one is looked for.
    searched_count: int


FULL = Sizes(
    append_count=20_000,
    append_rounds=15,
    rounds=9,
    record_count=1_000_000,
    searched_count=10_000_000,
)
QUICK = Sizes(
    append_count=10_000,
    append_rounds=7,
    rounds=3,
    record_count=200_000,
    searched_count=1_000_000,
)
TINY = Sizes(
    append_count=50,
    append_rounds=1,
    rounds=1,
    record_count=500,
    searched_count=2_000,
)
