"""How far the next micro-batch reads: all there is, a limited number of offsets, or nothing yet."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.shares import proportional_shares

Positions = Mapping[TopicPartition, int]


def new_offset_count(starts: Positions, ends: Positions) -> int:
    """How many offsets there are to read; a partition that has gone back has none."""
    return sum(max(0, end - starts.get(each, end)) for each, end in ends.items())


def limited_ends(starts: Positions, ends: Positions, limit: int) -> dict[TopicPartition, int]:
    """Ends before or at `ends`, with `limit` offsets in all, or as many as there are partitions."""
    sizes = {each: end - starts[each] for each, end in ends.items() if starts.get(each, end) < end}
    shares = proportional_shares(sizes, limit)
    return {
        each: starts[each] + shares[each] if each in shares else end for each, end in ends.items()
    }


class BatchGate:
    """Holds micro-batches back until they are large enough, or have waited for long enough."""

    def __init__(self, offsets_min: int | None, delay_ms: int) -> None:
        self._offsets_min = offsets_min
        self._delay_ms = delay_ms
        self._opened_ms: int | None = None

    def is_open(self, offset_count: int, now_ms: int) -> bool:
        """Whether a micro-batch of so many offsets may begin now; the first one always may."""
        if self._offsets_min is None:
            return True
        is_open = (
            self._opened_ms is None
            or offset_count >= self._offsets_min
            or now_ms - self._opened_ms >= self._delay_ms
        )
        if is_open:
            self._opened_ms = now_ms
        return is_open
