"""Whether a new leader has what a reader has read, by where its log of the reader's epoch ends."""

from __future__ import annotations

from headwater.client.consumer.errors import LogTruncationError
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.consumer.positions.questions import FoundOffset


def has_same_log(state: PartitionState, end: FoundOffset) -> bool:
    return _is_known(end) and end.offset >= state.offset


def truncation_error(state: PartitionState, end: FoundOffset) -> LogTruncationError:
    """What a reader is told whose log the leader does not have."""
    divergent_offset = end.offset if _is_known(end) else None
    reason = (
        "which the leader does not know"
        if divergent_offset is None
        else f"and the leader has other records from offset {divergent_offset} on"
    )
    return LogTruncationError(
        state.topic_partition,
        f"The log of {state.topic_partition} was truncated: offset {state.offset} was read in "
        f"leader epoch {state.offset_epoch}, {reason}.",
        divergent_offset,
    )


def _is_known(end: FoundOffset) -> bool:
    return end.offset >= 0 and end.leader_epoch >= 0
