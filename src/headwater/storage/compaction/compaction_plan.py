"""From a log with something to compact to a job that a child process understands.

The job holds everything that a pass must know, as it is at this moment; the ticket lets the log's
owner see later whether it still holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.storage.compaction.cleanable import DirtySection
from headwater.storage.compaction.compaction_filter import LastBatch
from headwater.storage.compaction.compaction_job import CompactionJob, SegmentExtent
from headwater.storage.compaction.offset_map import LOAD_FACTOR
from headwater.storage.compaction.segment_swap import CompactionTicket
from headwater.storage.producers.state import ProducerStates
from headwater.storage.segments.segment import LogSegment


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """The settings `log.cleaner.*`; memory and bytes per second are for all jobs together."""

    threads: int = 1
    dedupe_buffer_bytes: int = 128 << 20
    load_factor: float = LOAD_FACTOR
    io_buffer_bytes: int = 512 << 10
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000


def plan_compaction(
    section: DirtySection, config: CleanerConfig, now_ms: int
) -> tuple[CompactionTicket, CompactionJob]:
    """A pass over the dirty section of a log, and what it builds upon."""
    log = section.log
    end_offset = section.first_uncleanable_offset
    covered = [each for each in log.segments if each.base_offset < end_offset]
    ticket = CompactionTicket.take(log, covered)
    job = CompactionJob(
        directory=ticket.directory,
        config=log.config,
        segments=tuple(map(_extent, covered)),
        first_dirty_offset=section.first_dirty_offset,
        end_offset=end_offset,
        later_base_offsets=tuple(
            each.base_offset for each in log.segments if each.base_offset >= end_offset
        ),
        active_producers=last_batches(log.producer_states),
        now_ms=now_ms,
        dedupe_buffer_bytes=config.dedupe_buffer_bytes // config.threads,
        load_factor=config.load_factor,
        io_buffer_bytes=config.io_buffer_bytes,
        io_max_bytes_per_second=config.io_max_bytes_per_second / config.threads,
    )
    return ticket, job


def _extent(segment: LogSegment) -> SegmentExtent:
    return SegmentExtent(
        segment.base_offset,
        segment.next_offset,
        segment.size_bytes,
        segment.offset_index.size_bytes,
        segment.time_index.size_bytes,
    )


def last_batches(states: ProducerStates) -> dict[int, LastBatch]:
    """What compaction must leave of each producer that the log remembers."""
    return {
        entry.producer_id: LastBatch(
            entry.producer_epoch, entry.last_offset if entry.batches else None
        )
        for entry in states
    }
