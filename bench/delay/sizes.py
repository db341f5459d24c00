"""How much is measured: full for the record, quick for a look, tiny for tests."""

from __future__ import annotations

from dataclasses import dataclass

RECORD_SIZE_BYTES = 100


@dataclass(frozen=True, slots=True)
class Sizes:
    #: Lateness: how many are due a second, for how long, and how often that is measured.
    rates_per_s: tuple[int, ...]
    lateness_s: float
    rounds: int
    #: Rates that are tried one after the other until one does not hold, and for how long each.
    tried_rates_per_s: tuple[int, ...]
    tried_s: float
    #: How many wait for up to a week.
    waiting_count: int
    #: How many are due in the same second.
    burst_count: int
    #: Records whose writes and bytes are counted.
    counted_count: int
    #: Appends of a round, and rounds, beside another version of the source.
    append_count: int
    append_rounds: int


FULL = Sizes(
    rates_per_s=(1_000, 10_000),
    lateness_s=20.0,
    rounds=5,
    tried_rates_per_s=(20_000, 30_000, 40_000, 60_000, 80_000, 120_000),
    tried_s=5.0,
    waiting_count=10_000_000,
    burst_count=1_000_000,
    counted_count=50_000,
    append_count=20_000,
    append_rounds=15,
)
QUICK = Sizes(
    rates_per_s=(1_000, 10_000),
    lateness_s=5.0,
    rounds=2,
    tried_rates_per_s=(20_000, 40_000, 80_000),
    tried_s=2.0,
    waiting_count=500_000,
    burst_count=100_000,
    counted_count=20_000,
    append_count=5_000,
    append_rounds=7,
)
TINY = Sizes(
    rates_per_s=(100,),
    lateness_s=0.3,
    rounds=1,
    tried_rates_per_s=(1_000,),
    tried_s=0.2,
    waiting_count=500,
    burst_count=500,
    counted_count=200,
    append_count=50,
    append_rounds=1,
)
