"""The names of a partition directory's files.

A segment is a family of files that share a 20-digit base offset: `.log` holds the record batches,
`.index` and `.timeindex` find a place in it, `.txnindex` lists its aborted transactions and
`.hiddenindex` its hidden batches, where there are any. A file on its way in or out carries one more
suffix, and recovery reads the state of an interrupted change from these:

    .cleaned   written by compaction, not complete: thrown away
    .swap      complete and durable, replaces the segments it covers: finished
    .deleted   no longer part of the log, waiting to be removed: removed
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.checks import check
from headwater.storage.disk.files import FileSystem

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
HIDDEN_INDEX = ".hiddenindex"
SNAPSHOT = ".snapshot"

#: What every segment that compaction has written consists of.
COMPACTED_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
SEGMENT_SUFFIXES = (*COMPACTED_SUFFIXES, HIDDEN_INDEX)

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"

OFFSET_DIGITS = 20


class SegmentFileName(NamedTuple):
    """A directory entry taken apart: base offset, which file of the family, and its stage."""

    base_offset: int
    suffix: str
    stage: str  # "", CLEANED, SWAP or DELETED


def segment_file_name(base_offset: int, suffix: str, stage: str = "") -> str:
    check(base_offset >= 0, "a segment's base offset is not negative: %d", base_offset)
    return f"{base_offset:0{OFFSET_DIGITS}d}{suffix}{stage}"


def segment_path(directory: str, base_offset: int, suffix: str, stage: str = "") -> str:
    return f"{directory}/{segment_file_name(base_offset, suffix, stage)}"


def remove_segment_files(
    files: FileSystem, directory: str, base_offset: int, stage: str = ""
) -> None:
    """Remove what there is of a segment; the log first, for an index without one is never used."""
    for suffix in SEGMENT_SUFFIXES:
        path = segment_path(directory, base_offset, suffix, stage)
        if files.exists(path):
            files.remove(path)


def parse_segment_file_name(name: str) -> SegmentFileName | None:
    """None for names that belong to no segment (checkpoints, metadata, foreign files)."""
    digits, rest = name[:OFFSET_DIGITS], name[OFFSET_DIGITS:]
    if len(digits) != OFFSET_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    for stage in (CLEANED, SWAP, DELETED):
        if rest.endswith(stage):
            rest = rest[: -len(stage)]
            break
    else:
        stage = ""
    if rest not in SEGMENT_SUFFIXES and rest != SNAPSHOT:
        return None
    return SegmentFileName(int(digits), rest, stage)
