"""What a pass of compaction is told and what it says afterwards: values that travel to a child
process and back, and the grouping of segments that become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.storage.compaction.compaction_filter import FilterStats, LastBatch
from headwater.storage.compaction.offset_map import LOAD_FACTOR
from headwater.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from headwater.storage.log_config import LogConfig


class SegmentExtent(NamedTuple):
    """A segment as it was when the job was made."""

    base_offset: int
    next_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True)
class CompactionJob:
    directory: str
    config: LogConfig
    #: All segments in front of `end_offset`, from the start of the log on.
    segments: tuple[SegmentExtent, ...]
    first_dirty_offset: int
    end_offset: int
    #: Segments behind these: the markers of transactions that began in front of them may be there.
    later_base_offsets: tuple[int, ...]
    active_producers: Mapping[int, LastBatch]
    now_ms: int
    dedupe_buffer_bytes: int = 128 << 20
    load_factor: float = LOAD_FACTOR
    io_buffer_bytes: int = 512 << 10
    io_max_bytes_per_second: float = float("inf")


class CleanedGroup(NamedTuple):
    """A new segment, complete and durable but for its name.

    It is to take the place of some old ones; it begins where the first of them does.
    """

    old_base_offsets: tuple[int, ...]
    base_offset: int
    size_bytes: int


@dataclass(slots=True)
class CompactionStats:
    records: FilterStats = field(default_factory=FilterStats)
    #: What the offset map was made from: the dirty part of the log, as far as the map covers it.
    map_records_read: int = 0
    map_bytes_read: int = 0
    map_key_count: int = 0
    map_utilization: float = 0.0
    bytes_before: int = 0
    bytes_after: int = 0
    elapsed_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What there is to say when all segments are written."""

    #: All in front of it has been compacted.
    first_dirty_offset: int
    stats: CompactionStats


def group_segments(
    segments: Iterable[SegmentExtent], segment_bytes: int, index_bytes: int
) -> list[list[SegmentExtent]]:
    """Neighbours that fit into one segment together, even if nothing of them goes."""
    groups: list[list[SegmentExtent]] = []
    for segment in segments:
        if groups and _fits(groups[-1], segment, segment_bytes, index_bytes):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(
    group: Sequence[SegmentExtent], segment: SegmentExtent, segment_bytes: int, index_bytes: int
) -> bool:
    together = [*group, segment]
    last_offset = segment.next_offset - 1
    return (
        sum([each.size_bytes for each in together]) <= segment_bytes
        and sum([each.offset_index_bytes for each in together]) <= index_bytes
        and sum([each.time_index_bytes for each in together]) <= index_bytes
        and last_offset - group[0].base_offset <= RELATIVE_OFFSET_MAX
    )
