"""Rebuilding producer states from the log itself, where no snapshot is new enough."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.storage.producers.entry import AppendedBatch, AppendOrigin
from headwater.storage.producers.state import ProducerStates
from headwater.storage.segments.batch_scan import ScannedBatch
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_list import SegmentList


def replay_batch(
    states: ProducerStates, batch: ScannedBatch, index_of: LogSegment | None = None
) -> None:
    """Account for one batch; its aborted transactions go to the index of `index_of`, if given."""
    header = batch.header
    if header.producer_id < 0:
        states.end_offset = header.next_offset
        return
    appended = AppendedBatch.read(header, batch.data)
    pending = states.prepare((appended,), origin=AppendOrigin.REPLICATION)
    states.apply(pending)
    for completed in pending.completed:
        if completed.is_aborted and index_of is not None:
            stable = states.last_stable_offset(completed)
            index_of.add_aborted(completed, stable)
        states.complete_transaction(completed)


def replay_log(states: ProducerStates, segments: SegmentList, end_offset: int) -> None:
    """Account for the log from the states' end to `end_offset`; the segments must be sound."""
    if states.end_offset >= end_offset:
        return
    replay_segments(states, segments.from_offset(states.end_offset), end_offset)
    states.end_offset = end_offset


def replay_segments(
    states: ProducerStates, segments: Iterable[LogSegment], end_offset: int
) -> None:
    for segment in segments:
        if segment.base_offset >= end_offset:
            return
        start = segment.find(states.end_offset)
        if start is None:
            continue
        for batch in segment.scan(start.position):
            if batch.header.base_offset >= end_offset:
                return
            replay_batch(states, batch)
