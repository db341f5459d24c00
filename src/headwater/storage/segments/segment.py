"""One segment of a partition's log: a `.log` file of record batches and the indexes that find them.

A segment is written at its end only, by whoever owns the `PartitionLog`. It knows nothing of
offsets being assigned, of producers or of leaders: batches come in with their final headers. Its
files are opened through the handle cache, so an idle segment costs no descriptor.

After a failed append the bytes behind the last batch are undefined: `cut` takes them off.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headwater.base.checks import InvariantError, check
from headwater.storage.disk.files import FileRegion, FileSystem
from headwater.storage.disk.handles import CachedFile, HandleCache
from headwater.storage.errors import CorruptIndexError
from headwater.storage.indexes.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from headwater.storage.indexes.time_index import TimeIndex, TimestampOffset
from headwater.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from headwater.storage.log_config import LogConfig
from headwater.storage.producers.open_transactions import CompletedTransaction
from headwater.storage.segments.batch_scan import (
    LEGACY_SIZE_MIN,
    ScannedBatch,
    read_entry_header,
    scan_batches,
)
from headwater.storage.segments.empty_batches import EmptyBatches
from headwater.storage.segments.hidden_batches import HiddenBatches
from headwater.storage.segments.segment_files import (
    HIDDEN_INDEX,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    remove_segment_files,
    segment_path,
)
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    decode_records,
)
from headwater.wire.records.batch_header import CONTROL_BIT

#: Appends from this size on have room reserved for them, so far ahead at most. The usual sizes of
#: batches, 16 KB and 64 KB, are limits, so that the batches themselves are a little smaller.
_LARGE_APPEND_BYTES = 8 << 10
_RESERVE_AHEAD_BYTES_MAX = 4 << 20
#: Offset, length and magic, and the last offset delta where the magic has one.
_SPAN = struct.Struct(">qi4xb6xi")
#: The last message of an old file may be shorter than that.
_PADDING = bytes(_SPAN.size - LEGACY_SIZE_MIN - LOG_OVERHEAD)
#: A search for a batch reads this much at a time: about one index interval and a header.
_SEARCH_BYTES = 4096 + HEADER_SIZE


class BatchPosition(NamedTuple):
    """Where a batch stands in a log file."""

    position: int
    size: int
    base_offset: int
    last_offset: int


class LogSegment:
    def __init__(
        self,
        files: FileSystem,
        handles: HandleCache,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        created_ms: int,
        roll_jitter_ms: int = 0,
        stage: str = "",
    ) -> None:
        self.base_offset = base_offset
        self.directory = directory
        self.stage = stage
        #: Whether it left its log: a flush that was planned before may not find its files.
        self.is_removed = False
        self.created_ms = created_ms
        self._roll_jitter_ms = roll_jitter_ms
        self._files = files
        self._handles = handles
        self._index_interval_bytes = config.index_interval_bytes
        index_max_bytes = config.segment_index_bytes
        self.log: CachedFile = handles.open(self._path(LOG), create=True)
        self.offset_index = OffsetIndex(
            handles, self._path(OFFSET_INDEX), base_offset, index_max_bytes
        )
        self.time_index = TimeIndex(handles, self._path(TIME_INDEX), base_offset, index_max_bytes)
        self.transaction_index = TransactionIndex(files, handles, self._path(TRANSACTION_INDEX))
        #: The batches that consumers do not see; None if there was never one.
        self.hidden: HiddenBatches | None = None
        if files.exists(self._path(HIDDEN_INDEX)):
            self._keep_hidden()
        self.size_bytes = self.log.size()
        #: One past the last offset in the file; the owner sets it after loading.
        self.next_offset = base_offset
        #: The batch that `find` found last.
        self._last_found: BatchPosition | None = None
        #: What is known of batches that compaction has emptied; None before anybody asks.
        self._empty_batches: EmptyBatches | None = None
        #: Up to where the disk was asked to find room.
        self._reserved_bytes = 0
        self._bytes_since_index_entry = 0
        self._latest = self.time_index.last_entry
        #: The timestamp that time-based rolling counts from: that of the first batch.
        self._first_batch_timestamp: int | None = None

    def _path(self, suffix: str) -> str:
        return segment_path(self.directory, self.base_offset, suffix, self.stage)

    # -- appending -------------------------------------------------------------------------------

    def append(self, data: Buffer, batches: Sequence[BatchHeader]) -> None:
        """Write batches whose headers carry their final offsets."""
        first_offset, last_offset = batches[0].base_offset, batches[-1].last_offset
        if first_offset < self.next_offset or last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            raise InvariantError(
                f"offsets {first_offset} to {last_offset} do not fit behind {self.next_offset} "
                f"in the segment at {self.base_offset}"
            )
        position, size = self.size_bytes, len(data)
        if size >= _LARGE_APPEND_BYTES and position + size > self._reserved_bytes:
            self._reserve(position + size)
        self.log.write_at(position, data)
        if len(batches) == 1:
            self.note(batches[0])
        else:
            self._note_all(batches)

    def _reserve(self, end: int) -> None:
        """Let the disk find room for large appends in advance: they cost a tenth to a fifth less.

        As much as there is already, within bounds, so that a log that grows no further wastes
        little; what is left is given back when the segment is sealed or closed. Small appends
        gain next to nothing from it.
        """
        self._reserved_bytes = end + min(end, _RESERVE_AHEAD_BYTES_MAX)
        self.log.reserve(self._reserved_bytes)

    def give_back_reserve(self) -> None:
        if self._reserved_bytes > self.size_bytes:
            self.log.truncate(self.size_bytes)
        self._reserved_bytes = 0

    def note(self, header: BatchHeader) -> None:
        """Take a batch that now stands at the end of the file into the indexes."""
        last_offset = header.base_offset + header.last_offset_delta
        if header.attributes & CONTROL_BIT and header.is_delayed:
            self._keep_hidden().note(header, self.size_bytes)
        # A batch that compaction has emptied has a timestamp but no record of that time.
        elif header.max_timestamp > self._latest.timestamp and header.record_count > 0:
            self._latest = TimestampOffset(header.max_timestamp, last_offset)
        if self._first_batch_timestamp is None:
            self._first_batch_timestamp = header.max_timestamp
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self.offset_index.append(last_offset, self.size_bytes)
            self.time_index.append_if_later(*self._latest)
            self._bytes_since_index_entry = 0
        size = header.size_bytes
        self._bytes_since_index_entry += size
        self.size_bytes += size
        self.next_offset = last_offset + 1

    def _note_all(self, headers: Sequence[BatchHeader]) -> None:
        """The same for many, as a follower gets them; if it fails the segment must be `cut`."""
        if self._first_batch_timestamp is None:
            self._first_batch_timestamp = headers[0].max_timestamp
        latest_ms, latest_offset = self._latest
        interval_bytes = self._index_interval_bytes
        position, unindexed_bytes = self.size_bytes, self._bytes_since_index_entry
        last_offset = self.next_offset - 1
        for header in headers:
            base_offset, length, _, _, _, attributes, delta, _, max_ms, _, _, _, count = header
            last_offset = base_offset + delta
            if attributes & CONTROL_BIT and header.is_delayed:
                self._keep_hidden().note(header, position)
            elif max_ms > latest_ms and count > 0:
                latest_ms, latest_offset = max_ms, last_offset
            if unindexed_bytes > interval_bytes:
                self.offset_index.append(last_offset, position)
                self.time_index.append_if_later(latest_ms, latest_offset)
                unindexed_bytes = 0
            position += length + LOG_OVERHEAD
            unindexed_bytes += length + LOG_OVERHEAD
        self._latest = TimestampOffset(latest_ms, latest_offset)
        self._bytes_since_index_entry = unindexed_bytes
        self.size_bytes = position
        self.next_offset = last_offset + 1

    def _keep_hidden(self) -> HiddenBatches:
        if self.hidden is None:
            path = self._path(HIDDEN_INDEX)
            self.hidden = HiddenBatches(self._handles, path, self.base_offset)
        return self.hidden

    def add_aborted(self, transaction: CompletedTransaction, last_stable_offset: int) -> None:
        """Note the aborted transaction that a marker in this segment has ended."""
        producer_id, first_offset, last_offset, _ = transaction
        self.transaction_index.append(
            AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset)
        )

    def should_roll(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, config: LogConfig
    ) -> bool:
        """Whether batches of `size` bytes up to `last_offset` need a new segment first.

        The four conditions of the notes: size, age, a full index, and an offset too far from the
        base to be stored relative to it.
        """
        return (
            self.size_bytes > config.segment_bytes - size
            or (
                self.size_bytes > 0
                and self._age_ms(max_timestamp, now_ms) > config.roll_ms - self._roll_jitter_ms
            )
            or self.offset_index.is_full
            or self.time_index.is_full
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def _age_ms(self, max_timestamp: int, now_ms: int) -> int:
        """By message time if messages carry one, so that replicas roll at the same place.

        0 is none: see `largest_timestamp`.
        """
        if self._first_batch_timestamp is None:
            self._first_batch_timestamp = self._read_first_timestamp()
        first = self._first_batch_timestamp
        if first is not None and first > 0 and max_timestamp > 0:
            return max_timestamp - first
        return now_ms - self.created_ms

    def _read_first_timestamp(self) -> int | None:
        if self.size_bytes == 0:
            return None
        raw = self.log.read_at(0, HEADER_SIZE)
        return read_entry_header(raw.ljust(HEADER_SIZE, b"\0")).max_timestamp

    # -- reading ---------------------------------------------------------------------------------

    def find(self, offset: int, from_position: int = 0) -> BatchPosition | None:
        """The first batch that reaches `offset`: holds it, or lies behind it in a gap."""
        last_found = self._last_found
        if last_found is not None and offset == last_found.last_offset + 1:
            # A consumer that takes a batch at a time: the next one needs no search.
            position, latest = last_found.position + last_found.size, None
        else:
            position, latest = self.offset_index.stretch(offset)
        if latest is not None and latest - position > _SEARCH_BYTES and latest >= from_position:
            # Large batches have an entry each, so the last candidate is most often the one.
            base_offset, length, _, delta = _SPAN.unpack(self.log.read_at(latest, _SPAN.size))
            if base_offset <= offset:
                size = length + LOG_OVERHEAD
                self._last_found = BatchPosition(latest, size, base_offset, base_offset + delta)
                return self._last_found
        if position < from_position:
            position = from_position
        while position < self.size_bytes:
            chunk = self.log.read_at(position, min(_SEARCH_BYTES, self.size_bytes - position))
            if len(chunk) < _SEARCH_BYTES:
                chunk += _PADDING
            at, at_max = 0, len(chunk) - _SPAN.size
            while at <= at_max:
                base_offset, length, magic, delta = _SPAN.unpack_from(chunk, at)
                last_offset = base_offset + delta if magic >= MAGIC_V2 else base_offset
                if last_offset >= offset:
                    size = length + LOG_OVERHEAD
                    self._last_found = BatchPosition(position + at, size, base_offset, last_offset)
                    return self._last_found
                check(length > 0, "%s: no batch at position %d", self.log.path, position + at)
                at += length + LOG_OVERHEAD
            check(at > 0, "%s: no batch at position %d", self.log.path, position)
            position += at
        return None

    @property
    def empty_batches(self) -> EmptyBatches:
        if self._empty_batches is None:
            self._empty_batches = EmptyBatches(self.log)
        return self._empty_batches

    def region(self, position: int, size: int) -> FileRegion:
        return FileRegion(self.log, position, size)

    def scan(self, start: int = 0) -> Iterator[ScannedBatch]:
        return scan_batches(self.log, start, self.size_bytes)

    def scan_visible(self, start: int = 0) -> Iterator[ScannedBatch]:
        """The same without hidden batches, which are not even read."""
        if self.hidden is not None:
            for stretch in self.hidden.behind(start):
                if start < stretch.position:
                    yield from scan_batches(self.log, start, stretch.position)
                start = stretch.end
        yield from self.scan(start)

    @property
    def largest_timestamp(self) -> int:
        """The youngest record's timestamp; the file's own age where records carry none.

        Of hidden batches the time of their append counts, so that a segment of nothing else grows
        old like any other.

        0 counts as none. Nobody means 1970, but librdkafka writes 0 over records that have no
        timestamp, and logs that were written before leaders corrected that hold such batches.
        """
        largest = self._latest.timestamp
        if self.hidden is not None:
            largest = max(largest, self.hidden.largest_ms)
        if largest > 0:
            return largest
        return self._files.modified_ms(self.log.path)

    @property
    def latest(self) -> TimestampOffset:
        """The largest timestamp that consumers see, and the last offset of its batch."""
        return self._latest

    def largest_timestamp_between(
        self, offset: int, upper_offset: int, max_decompressed_bytes: int
    ) -> int:
        """The largest timestamp of the records in [offset, upper_offset) that can be seen."""
        if offset <= self.base_offset and upper_offset >= self.next_offset:
            return self._latest.timestamp
        largest = NO_TIMESTAMP
        if offset <= self.base_offset:
            # Up to the last indexed batch in front of the end the time index knows.
            indexed = self.offset_index.lookup(upper_offset - 1)
            largest = self.time_index.largest_until(indexed.offset)
            position = indexed.position
        else:
            start = self.find(offset)
            position = self.size_bytes if start is None else start.position
        for batch in self.scan_visible(position):
            header = batch.header
            if header.base_offset >= upper_offset:
                break
            if header.max_timestamp <= largest:
                continue
            if header.base_offset >= offset and header.last_offset < upper_offset:
                largest = header.max_timestamp
            else:
                records = decode_records(batch.data, max_decompressed_bytes=max_decompressed_bytes)
                wanted = (
                    each.timestamp for each in records if offset <= each.offset < upper_offset
                )
                largest = max(largest, max(wanted, default=NO_TIMESTAMP))
        return largest

    def find_timestamp(
        self, timestamp: int, starting_offset: int, max_decompressed_bytes: int
    ) -> TimestampOffset | None:
        """The first record at or after `starting_offset` that is not older than `timestamp`.

        Nothing is found in a hidden batch.
        """
        indexed = self.time_index.lookup(timestamp)
        start = self.offset_index.lookup(max(indexed.offset, starting_offset)).position
        for batch in self.scan_visible(start):
            header = batch.header
            if header.max_timestamp < timestamp or header.last_offset < starting_offset:
                continue
            for record in decode_records(batch.data, max_decompressed_bytes=max_decompressed_bytes):
                if record.timestamp >= timestamp and record.offset >= starting_offset:
                    return TimestampOffset(record.timestamp, record.offset)
        return None

    # -- end of life -----------------------------------------------------------------------------

    def finish_indexes(self) -> None:
        """Have all of them in their files; the time index ends with the largest timestamp."""
        self.time_index.append_if_later(*self._latest)
        self.offset_index.write_out()
        self.time_index.write_out()
        if self.hidden is not None:
            self.hidden.finish()

    def seal(self) -> None:
        """Another segment follows: nothing more is written here."""
        self.finish_indexes()
        self.give_back_reserve()
        self.offset_index.trim()
        self.time_index.trim()
        if self.hidden is not None:
            self.hidden.trim()

    def sync(self) -> None:
        self.log.sync()
        self.offset_index.sync()
        self.time_index.sync()
        self.transaction_index.sync()
        if self.hidden is not None:
            self.hidden.sync()

    def sanity_check(self) -> None:
        """CorruptIndexError if an index can be seen to be wrong without reading the log."""
        index = self.offset_index
        if self.size_bytes and (index.was_missing or self.time_index.was_missing):
            raise CorruptIndexError(f"{self.log.path} has records but lacks an index.")
        if index.entry_count and not 0 <= index.last_entry.position < self.size_bytes:
            raise CorruptIndexError(f"{index.path} points to outside of its log.")
        self.offset_index.sanity_check()
        self.time_index.sanity_check()
        self.transaction_index.sanity_check(self.base_offset)
        if self.hidden is not None:
            self.hidden.sanity_check(self.size_bytes)

    def find_end(self) -> None:
        """Set the next offset and the largest timestamp from the file."""
        self.next_offset = self._next_offset_in_file()
        self._latest = self._latest_in_file()

    def cut(self, position: int) -> None:
        """End the segment at a batch boundary: to truncate it, or to undo a failed append."""
        self.log.truncate(position)
        self._last_found = self._empty_batches = None
        self._reserved_bytes = 0
        self.size_bytes = position
        self.offset_index.truncate_to_position(position)
        self.next_offset = self._next_offset_in_file()
        self.time_index.truncate_to(self.next_offset)
        self.transaction_index.truncate_to(self.next_offset)
        if self.hidden is not None:
            self.hidden.cut(position, self.next_offset)
        self._bytes_since_index_entry = 0
        if position == 0:
            self._first_batch_timestamp = None
        self._latest = self._latest_in_file()

    def _next_offset_in_file(self) -> int:
        """One past the last offset in the file, by reading behind the last index entry."""
        next_offset = self.base_offset
        for batch in self.scan(self.offset_index.last_entry.position):
            next_offset = batch.header.next_offset
        return next_offset

    def _latest_in_file(self) -> TimestampOffset:
        """The running maximum: the index has it but for the last stretch."""
        latest = self.time_index.last_entry
        for batch in self.scan_visible(self.offset_index.lookup(latest.offset).position):
            if batch.header.max_timestamp > latest.timestamp and batch.header.record_count > 0:
                latest = TimestampOffset(batch.header.max_timestamp, batch.header.last_offset)
        return latest

    def reset_for_recovery(self) -> None:
        """Forget what the indexes say, before `note` is told of each batch in turn."""
        self.offset_index.clear()
        self.time_index.clear()
        self.transaction_index.reset()
        if self.hidden is not None:
            self.hidden.clear()
        self._last_found = self._empty_batches = None
        self.size_bytes = 0
        self.next_offset = self.base_offset
        self._latest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._first_batch_timestamp = None
        self._bytes_since_index_entry = 0

    def move_to_stage(self, stage: str) -> None:
        """Rename all files to another stage (`.swap`, `.deleted`, or live); the caller syncs."""
        for suffix in SEGMENT_SUFFIXES:
            source = self._path(suffix)
            if self._files.exists(source):
                self._files.rename(
                    source, segment_path(self.directory, self.base_offset, suffix, stage)
                )
        self.stage = stage
        self.log.moved_to(self._path(LOG))
        self.offset_index.moved_to(self._path(OFFSET_INDEX))
        self.time_index.moved_to(self._path(TIME_INDEX))
        self.transaction_index.moved_to(self._path(TRANSACTION_INDEX))
        if self.hidden is not None:
            self.hidden.moved_to(self._path(HIDDEN_INDEX))

    def move_to_directory(self, directory: str) -> None:
        """The directory itself was renamed."""
        self.directory = directory
        self.move_to_stage(self.stage)

    def remove_files(self) -> None:
        """Close and delete."""
        self.is_removed = True
        self.close()
        remove_segment_files(self._files, self.directory, self.base_offset, self.stage)

    def close(self) -> None:
        self.log.close()
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()
        if self.hidden is not None:
            self.hidden.close()
