"""How far a consumer is behind: the end that it can read up to, minus its position.

The end is the high watermark, or with read committed the last stable offset. Every answer to a
fetch carries both, so while a partition is being read its lag is known without asking.
"""

from __future__ import annotations

from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.isolation import IsolationLevel


def lag_of(state: PartitionState, isolation_level: IsolationLevel) -> int | None:
    """The lag by the last fetch; None where there was none, or where the position is not known."""
    end_offset = state.end_offset(isolation_level)
    if end_offset < 0 or not state.has_position:
        return None
    return max(0, end_offset - state.offset)
