"""Finishing or undoing what a crash interrupted in a partition's directory.

File names alone tell how far a change had come (see `segment_files`). A cleaned segment is complete
and durable before it is named `.swap`, and the segments that it replaces are out of the way,
durably, before it takes its live name. So a `.cleaned` file is thrown away, a `.swap` file is
carried on to the end, and a `.deleted` file is removed. After a swap that was cut short the files
of a segment may be of different generations, hence its indexes are not to be trusted.
"""

from __future__ import annotations

import logging

from headwater.storage.batch_scan import scan_batches
from headwater.storage.files import TEMPORARY_SUFFIX, FileSystem
from headwater.storage.segment_files import (
    CLEANED,
    DELETED,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    parse_segment_file_name,
    segment_path,
)
from headwater.wire.records import CorruptRecordError

_logger = logging.getLogger(__name__)


def finish_interrupted_changes(files: FileSystem, directory: str) -> set[int]:
    """Leave only live files; returns the base offsets whose indexes must be rebuilt."""
    swaps: set[int] = set()
    live_logs: set[int] = set()
    changed = False
    for name in files.list_dir(directory):
        parsed = parse_segment_file_name(name)
        if name.endswith(TEMPORARY_SUFFIX) or (
            parsed is not None and parsed.stage in (CLEANED, DELETED)
        ):
            files.remove(f"{directory}/{name}")
            changed = True
        elif parsed is not None and parsed.stage == SWAP:
            swaps.add(parsed.base_offset)
        elif parsed is not None and parsed.suffix == LOG:
            live_logs.add(parsed.base_offset)
    if changed:
        files.sync_dir(directory)
    for base_offset in sorted(swaps):
        _logger.info("%s: finishing the compaction of segment %d", directory, base_offset)
        _finish_swap(files, directory, base_offset, live_logs)
    _remove_orphans(files, directory)
    return swaps


def _finish_swap(files: FileSystem, directory: str, base_offset: int, live_logs: set[int]) -> None:
    swap_log = segment_path(directory, base_offset, LOG, SWAP)
    if files.exists(swap_log):
        end_offset = _end_offset(files, swap_log, base_offset)
        for replaced in sorted(live_logs):
            if replaced == base_offset or base_offset < replaced < end_offset:
                _remove_segment(files, directory, replaced)
        files.sync_dir(directory)
    # The log goes last: while its `.swap` name is there, this work is not done.
    for suffix in reversed(SEGMENT_SUFFIXES):
        swap = segment_path(directory, base_offset, suffix, SWAP)
        if files.exists(swap):
            files.rename(swap, segment_path(directory, base_offset, suffix))
            files.sync_dir(directory)


def _end_offset(files: FileSystem, path: str, base_offset: int) -> int:
    """One past the last offset of a cleaned segment, which was synced before it was named."""
    file = files.open(path)
    end_offset = base_offset
    try:
        for batch in scan_batches(file, 0, file.size()):
            end_offset = batch.header.next_offset
    except CorruptRecordError as error:
        _logger.error("%s: a compacted segment is damaged: %s", path, error)
    finally:
        file.close()
    return end_offset


def _remove_segment(files: FileSystem, directory: str, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        path = segment_path(directory, base_offset, suffix)
        if files.exists(path):
            files.remove(path)


def _remove_orphans(files: FileSystem, directory: str) -> None:
    """Indexes without a log: their log's name did not survive, or was removed before them."""
    names = [parse_segment_file_name(name) for name in files.list_dir(directory)]
    logs = {name.base_offset for name in names if name is not None and name.suffix == LOG}
    for name in names:
        if name is not None and name.base_offset not in logs and name.suffix != SNAPSHOT:
            files.remove(segment_path(directory, name.base_offset, name.suffix))
