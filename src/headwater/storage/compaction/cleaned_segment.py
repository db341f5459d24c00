"""The segment that compaction writes: files named `.cleaned`, with all indexes, durable at the end.

It is an ordinary segment in all but its name, so its indexes come about as those of any other.
Batches are gathered to writes of some size. The transaction index gets those entries of the old
segments' that are still needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.checks import check
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.log_config import LogConfig
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_files import CLEANED, remove_segment_files
from headwater.wire.records import NO_TIMESTAMP, BatchHeader, Buffer

#: Positions in an index are 32-bit numbers.
_SIZE_BYTES_MAX = 2**31 - 1


class CleanedSegment:
    def __init__(
        self,
        files: FileSystem,
        handles: HandleCache,
        directory: str,
        base_offset: int,
        config: LogConfig,
        buffer_bytes: int,
    ) -> None:
        # What an earlier job left of this name would otherwise be continued.
        remove_files_at(files, directory, [base_offset])
        self._segment = LogSegment(
            files, handles, directory, base_offset, config, created_ms=0, stage=CLEANED
        )
        # All four files exist, so that after a crash a missing one tells how far a swap had come.
        # A fifth comes with hidden batches: see `interrupted_changes`.
        self._segment.transaction_index.create()
        self._buffer_bytes = buffer_bytes
        self._parts: list[Buffer] = []
        self._headers: list[BatchHeader] = []
        self._waiting_bytes = 0

    @property
    def size_bytes(self) -> int:
        return self._segment.size_bytes + self._waiting_bytes

    def append(self, data: Buffer, header: BatchHeader) -> int:
        """Add a batch; returns the bytes that were written now."""
        if header.record_count == 0:
            # It keeps its timestamp for its producer's sake, but there is no record to be found.
            header = header._replace(max_timestamp=NO_TIMESTAMP)
        self._parts.append(data)
        self._headers.append(header)
        self._waiting_bytes += len(data)
        return self._write() if self._waiting_bytes >= self._buffer_bytes else 0

    def _write(self) -> int:
        written_bytes = self._waiting_bytes
        if written_bytes:
            # Batches can grow a little, by a delete horizon far from their timestamps.
            check(
                self.size_bytes <= _SIZE_BYTES_MAX,
                "%s outgrows what an index can point to",
                self._segment.log.path,
            )
            self._segment.append(b"".join(self._parts), self._headers)
            self._parts, self._headers, self._waiting_bytes = [], [], 0
        return written_bytes

    def add_aborted(self, transaction: AbortedTransaction | None) -> None:
        if transaction is not None:
            self._segment.transaction_index.append(transaction)

    def finish(self) -> None:
        """Write the rest and make everything but the names durable."""
        self._write()
        self._segment.seal()
        self._segment.sync()

    def close(self) -> None:
        self._segment.close()


def remove_files_at(
    files: FileSystem, directory: str, base_offsets: Iterable[int], stage: str = CLEANED
) -> None:
    """Throw away what compaction wrote but nobody put in place."""
    for base_offset in base_offsets:
        remove_segment_files(files, directory, base_offset, stage)
