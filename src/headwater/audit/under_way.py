"""What a source has sent to `__audit` and nobody has answered yet.

It is kept as it is until somebody answers: if it was written and the answer was lost, the very same
rows come again, and are recognised by where they end or by their names. Rows that were made anew
would tell again what befell the partition meanwhile, such as refusals.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.audit.rows import BROKER_TIER, VERSION, Row, encode_row
from headwater.audit.shard import Stretch


class Facts(NamedTuple):
    """What befell a partition beside what is counted: refusals so far, and moves of its start."""

    #: Duplicates, and batches with a gap in front.
    refusals: tuple[int, int]
    log_start_offset: int
    log_starts: list[list[int]]

    def row(self, refusals_told: tuple[int, int]) -> Row:
        """As rows have it, without the refusals that were told before."""
        told: Row = {
            "duplicates_refused": self.refusals[0] - refusals_told[0],
            "gaps_refused": self.refusals[1] - refusals_told[1],
            "log_start_offset": self.log_start_offset,
        }
        return told | {"log_starts": self.log_starts} if self.log_starts else told


class UnderWay(NamedTuple):
    """A stretch, and what is told with it."""

    stretch: Stretch
    facts: Facts
    record_count: int = 0


def row_apart(row: Row, facts: Facts) -> UnderWay:
    """A row that counts nothing, for offsets that it names: facts alone, or a loss."""
    row = {
        "version": VERSION,
        "tier": BROKER_TIER,
        **row,
        "time_bucket_start": None,
        "time_bucket_end": None,
        "count": 0,
    }
    stretch = Stretch(row["source"], row["from_offset"], row["to_offset"], [encode_row(row)])
    return UnderWay(stretch, facts)
