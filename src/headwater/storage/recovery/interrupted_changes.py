"""Finishing or undoing what a crash interrupted in a partition's directory.

File names alone tell how far a change had come (see `segment_files`). A `.deleted` file is removed,
and so is a `.cleaned` one: compaction did not get to the end. Compaction writes all four of a
segment's files and then calls them `.swap`. As long as one of them is still `.cleaned`, nothing
else has happened, and all four are thrown away. Otherwise the swap is carried on to the end. Which
of the segment's live files are then old ones? Those are durably out of the way before the first
`.swap` takes its live name: while all four are called `.swap`, whatever is live is old, and as soon
as one is missing, it is one of the new. A segment with hidden batches has a fifth file, which its
log tells: then it is all five.
"""

from __future__ import annotations

import logging

from headwater.storage.disk.files import TEMPORARY_SUFFIX, FileSystem
from headwater.storage.segments.batch_scan import scan_batches
from headwater.storage.segments.segment_files import (
    CLEANED,
    COMPACTED_SUFFIXES,
    DELETED,
    HIDDEN_INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    SegmentFileName,
    parse_segment_file_name,
    remove_segment_files,
    segment_path,
)
from headwater.wire.records import CorruptRecordError

_logger = logging.getLogger(__name__)


def finish_interrupted_changes(files: FileSystem, directory: str) -> list[SegmentFileName]:
    """Leave only live files, and list them."""
    names, temporary = _list(files, directory)
    begun = {name.base_offset for name in names if name.stage == CLEANED}
    swaps = {name.base_offset for name in names if name.stage == SWAP}
    # These first: what is `.cleaned` is the sign that they do not count.
    _remove(files, directory, [n for n in names if n.stage == SWAP and n.base_offset in begun])
    _remove(files, directory, [n for n in names if n.stage in (CLEANED, DELETED)])
    for name in temporary:
        files.remove(f"{directory}/{name}")
    for base_offset in sorted(swaps - begun):
        _logger.info("%s: finishing the compaction of segment %d", directory, base_offset)
        _finish_swap(files, directory, base_offset, names)
    if swaps:
        names, _ = _list(files, directory)
    return _without_orphans(files, directory, [name for name in names if not name.stage])


def _list(files: FileSystem, directory: str) -> tuple[list[SegmentFileName], list[str]]:
    """Names of segments' files and snapshots, and those of files that were not finished."""
    names, temporary = [], []
    for name in files.list_dir(directory):
        parsed = parse_segment_file_name(name)
        if parsed is not None:
            names.append(parsed)
        elif name.endswith(TEMPORARY_SUFFIX):
            temporary.append(name)
    return names, temporary


def _remove(files: FileSystem, directory: str, names: list[SegmentFileName]) -> None:
    for name in names:
        files.remove(segment_path(directory, *name))
    if names:
        files.sync_dir(directory)


def _finish_swap(
    files: FileSystem, directory: str, base_offset: int, names: list[SegmentFileName]
) -> None:
    swaps = {name.suffix for name in names if name[0] == base_offset and name.stage == SWAP}
    live_logs = {name.base_offset for name in names if name.suffix == LOG and not name.stage}
    is_begun = True
    if LOG in swaps:
        swap_log = segment_path(directory, base_offset, LOG, SWAP)
        end_offset, has_hidden = _look_through(files, swap_log, base_offset)
        written = {*COMPACTED_SUFFIXES, *((HIDDEN_INDEX,) if has_hidden else ())}
        # Kafka writes no transaction index that is empty; its old log is in place until the end.
        is_begun = not swaps.issuperset(written) and base_offset not in live_logs
    if not is_begun:
        for replaced in sorted(live_logs):
            if base_offset < replaced < end_offset:
                remove_segment_files(files, directory, replaced)
        files.sync_dir(directory)
        remove_segment_files(files, directory, base_offset)
        files.sync_dir(directory)
    for suffix in sorted(swaps):
        path = segment_path(directory, base_offset, suffix)
        files.rename(f"{path}{SWAP}", path)
    files.sync_dir(directory)


def _look_through(files: FileSystem, path: str, base_offset: int) -> tuple[int, bool]:
    """One past the last offset of a cleaned segment, and whether it has hidden batches.

    It was synced before it was named.
    """
    file = files.open(path)
    end_offset, has_hidden = base_offset, False
    try:
        for batch in scan_batches(file, 0, file.size()):
            end_offset = batch.header.next_offset
            has_hidden = has_hidden or batch.header.is_delayed
    except CorruptRecordError as error:
        _logger.error("%s: a compacted segment is damaged: %s", path, error)
    finally:
        file.close()
    return end_offset, has_hidden


def _without_orphans(
    files: FileSystem, directory: str, names: list[SegmentFileName]
) -> list[SegmentFileName]:
    """Remove indexes without a log: its name did not survive, or was removed before theirs."""
    logs = {name.base_offset for name in names if name.suffix == LOG}
    kept = []
    for name in names:
        if name.base_offset in logs or name.suffix == SNAPSHOT:
            kept.append(name)
        else:
            files.remove(segment_path(directory, name.base_offset, name.suffix))
    return kept
