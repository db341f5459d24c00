"""Index files, entry by entry, each checked against the log that it belongs to.

The checks are those of Apache's dumper: an offset index entry leads to a batch that ends with its
offset; a time index entry has the largest timestamp of the batch that ends with its offset, and is
younger than the one in front of it. Looking at a batch costs one read, so an index of a gigabyte of
log is checked in seconds without walking the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.storage.disk.files import File, FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import CorruptIndexError
from headwater.storage.indexes.hidden_index import HiddenIndex
from headwater.storage.indexes.offset_index import OffsetIndex
from headwater.storage.indexes.time_index import TimeIndex
from headwater.storage.indexes.transaction_index import VERSION, TransactionIndex
from headwater.storage.inspection.dump.items import (
    DumpItem,
    Fault,
    IndexedOffsetMissing,
    IndexRemark,
    OffsetMismatch,
    TimestampDisorder,
    TimestampMismatch,
    TransactionEntry,
)
from headwater.storage.inspection.index_entries import (
    HIDDEN_ENTRY,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    count_entries,
    floor_position,
    iter_aborted_transactions,
    iter_hidden_stretches,
    iter_offset_entries,
    iter_time_entries,
)
from headwater.storage.segments.batch_scan import read_entry_header, scan_batches
from headwater.storage.segments.segment_files import (
    HIDDEN_INDEX,
    LOG,
    OFFSET_INDEX,
    TIME_INDEX,
    SegmentFileName,
    segment_file_name,
)
from headwater.wire.records import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, CorruptRecordError

#: Enough for a header and a small batch; the scan reads more if the batch is larger.
_LOOK_BYTES = 8192


def dump_offset_index(
    files: FileSystem, path: str, name: SegmentFileName, *, show: bool
) -> Iterator[DumpItem]:
    """The entries, if they are to be shown, and those that contradict the log."""
    index = files.open(path)
    count = count_entries(index, OFFSET_ENTRY)
    if count == 0:
        yield IndexRemark(path, is_empty=True)
    yield from _partial_entry(path, index.size(), OFFSET_ENTRY.size)
    log = _open_sibling(files, path, name, LOG)
    if log is None:
        yield Fault(path, "there is no log beside this index, so its entries are not checked")
    for number, entry in enumerate(iter_offset_entries(index, name.base_offset, count)):
        if log is not None:
            yield from _check_position(log, path, number, *entry)
        if show:
            yield entry


def _check_position(
    log: File, path: str, number: int, offset: int, position: int
) -> Iterator[DumpItem]:
    entry_position = number * OFFSET_ENTRY.size
    header_bytes = log.read_at(position, HEADER_SIZE) if position >= 0 else b""
    try:
        header: BatchHeader | None = read_entry_header(header_bytes.ljust(HEADER_SIZE, b"\0"))
    except CorruptRecordError:
        header = None
    if header is None or not header_bytes:
        sentence = f"no batch starts at position {position} of the log, where offset {offset} leads"
        yield Fault(path, sentence, entry_position)
    elif header.last_offset != offset:
        sentence = f"the batch at position {position} of the log ends with {header.last_offset}"
        yield OffsetMismatch(path, sentence, entry_position, offset, header.last_offset)


def dump_time_index(
    files: FileSystem, path: str, name: SegmentFileName, *, show: bool
) -> Iterator[DumpItem]:
    """The entries, if they are to be shown, and those that contradict the log or each other."""
    index = files.open(path)
    count = count_entries(index, TIME_ENTRY)
    yield from _partial_entry(path, index.size(), TIME_ENTRY.size)
    log = _open_sibling(files, path, name, LOG)
    offset_index = _open_sibling(files, path, name, OFFSET_INDEX)
    offset_count = count_entries(offset_index, OFFSET_ENTRY) if offset_index is not None else 0
    if log is None:
        yield Fault(path, "there is no log beside this index, so its entries are not checked")
    previous = NO_TIMESTAMP
    for number, entry in enumerate(iter_time_entries(index, name.base_offset, count)):
        entry_position = number * TIME_ENTRY.size
        if log is not None:
            start = 0
            if offset_index is not None:
                start = floor_position(offset_index, name.base_offset, offset_count, entry.offset)
            batch = _find_batch(log, start, entry.offset)
            if batch is None or batch.last_offset != entry.offset:
                found = -1 if batch is None else batch.last_offset
                sentence = f"no batch ends with offset {entry.offset}"
                yield IndexedOffsetMissing(path, sentence, entry_position, entry.offset, found)
            elif batch.max_timestamp != entry.timestamp:
                sentence = f"the batch that ends with {entry.offset} has {batch.max_timestamp}"
                yield TimestampMismatch(
                    path, sentence, entry_position, entry.timestamp, batch.max_timestamp
                )
        if entry.timestamp <= previous:
            sentence = f"the entry in front has the timestamp {previous}"
            yield TimestampDisorder(path, sentence, entry_position, entry.timestamp, previous)
        previous = entry.timestamp
        if show:
            yield entry


def _find_batch(log: File, start: int, offset: int) -> BatchHeader | None:
    """The first batch from `start` on that reaches `offset`; None if the log holds none."""
    try:
        for batch in scan_batches(log, start, log.size(), chunk_bytes=_LOOK_BYTES):
            if batch.header.last_offset >= offset:
                return batch.header
    except CorruptRecordError:
        return None
    return None


def dump_transaction_index(files: FileSystem, path: str) -> Iterator[DumpItem]:
    """The aborted transactions."""
    index = files.open(path)
    for number, (version, transaction) in enumerate(iter_aborted_transactions(index)):
        if version != VERSION:
            position = number * TRANSACTION_ENTRY.size
            yield Fault(path, f"an entry has version {version}, and only 0 is known", position)
            return
        yield TransactionEntry(version, transaction)
    yield from _partial_entry(path, index.size(), TRANSACTION_ENTRY.size)


def dump_hidden_index(files: FileSystem, path: str, name: SegmentFileName) -> Iterator[DumpItem]:
    """The stretches of hidden batches."""
    index = files.open(path)
    yield from iter_hidden_stretches(index, name.base_offset)
    yield from _partial_entry(path, index.size(), HIDDEN_ENTRY.size)


def check_sanity(files: FileSystem, path: str, name: SegmentFileName) -> Iterator[DumpItem]:
    """The quick check by which a starting broker decides whether an index must be rebuilt."""
    handles = HandleCache(files, 1)
    size = files.size(path)
    try:
        if name.suffix == OFFSET_INDEX:
            OffsetIndex(handles, path, name.base_offset, size).sanity_check()
        elif name.suffix == TIME_INDEX:
            TimeIndex(handles, path, name.base_offset, size).sanity_check()
        elif name.suffix == HIDDEN_INDEX:
            log = _open_sibling(files, path, name, LOG)
            log_bytes = 0 if log is None else log.size()
            HiddenIndex(handles, path, name.base_offset).sanity_check(log_bytes)
        else:
            TransactionIndex(files, handles, path).sanity_check(name.base_offset)
    except CorruptIndexError as error:
        yield Fault(path, str(error).removeprefix(f"{path}: ").rstrip("."))
        return
    yield IndexRemark(path, is_empty=False)


def _open_sibling(files: FileSystem, path: str, name: SegmentFileName, suffix: str) -> File | None:
    directory = path.rpartition("/")[0] or "."
    sibling = f"{directory}/{segment_file_name(name.base_offset, suffix, name.stage)}"
    return files.open(sibling) if files.exists(sibling) else None


def _partial_entry(path: str, size: int, entry_size: int) -> Iterator[DumpItem]:
    if size % entry_size:
        sentence = f"its size, {size}, is no multiple of {entry_size}: the last entry is not whole"
        yield Fault(path, sentence, size - size % entry_size)
