"""The batches of a segment that consumers never see: delayed ones, until they are delivered.

Consumers' reads leave them out, so the next batch behind them must be found without walking through
them. They are known as stretches (`hidden_index`). The last stretch is in memory as long as it may
still grow; it joins the others in the file when another begins, or when the segment is sealed or
closed. A segment that never had a hidden batch has neither this object nor a file.

What is in the file is right for all that is in front of the recovery point, because the file and
its name are synced when the segment is sealed; a segment with the recovery point or behind it is
scanned after an unclean stop, and the file is written anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from headwater.storage.disk.handles import HandleCache
from headwater.storage.indexes.hidden_index import HiddenIndex, HiddenStretch
from headwater.wire.records import NO_TIMESTAMP, BatchHeader


class HiddenBatches:
    """Of one segment, which owns it."""

    def __init__(self, handles: HandleCache, path: str, base_offset: int) -> None:
        self._handles = handles
        self._path = path
        self._base_offset = base_offset
        self._name_is_durable = handles.files.exists(path)
        self._index: HiddenIndex | None = None
        if self._name_is_durable:
            self._index = HiddenIndex(handles, path, base_offset)
        #: The last stretch while it may grow; it is not in the index then.
        self._running: HiddenStretch | None = None
        #: Where the hidden batches begin that reach from earlier segments into this one, if that
        #: is known: see `visible_end`.
        self.run_start: int | None = None

    # -- reading ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[HiddenStretch]:
        return self.behind(0)

    @property
    def last(self) -> HiddenStretch | None:
        """The last stretch."""
        if self._running is not None:
            return self._running
        index = self._index
        return index.last_entry if index is not None and index.entry_count else None

    @property
    def largest_ms(self) -> int:
        """The largest time of a hidden batch, which is that of its append.

        After a cut it may be that of one which was cut off.
        """
        last = self.last
        return NO_TIMESTAMP if last is None else last.largest_ms

    def behind(self, position: int) -> Iterator[HiddenStretch]:
        """The stretches that end behind `position`, in order; the first may hold it."""
        index = self._index
        # Consumers mostly read near the end: no search.
        if index is not None and index.entry_count and index.last_entry.end > position:
            number = index.number_ending_behind(position)
            while number < index.entry_count:
                yield index.entry(number)
                number += 1
        if self._running is not None and self._running.end > position:
            yield self._running

    def last_before(self, offset: int) -> HiddenStretch | None:
        """The last stretch that begins in front of `offset`."""
        last = self.last
        if last is None or last.first_offset < offset:
            return last
        return None if self._index is None else self._index.last_before(offset)

    # -- writing ---------------------------------------------------------------------------------

    def note(self, header: BatchHeader, position: int) -> None:
        """A hidden batch now stands at `position`, the end of the file."""
        last = self.last
        end = position + header.size_bytes
        largest_ms = max(header.max_timestamp, self.largest_ms)
        if last is not None and last.end == position:
            if self._running is None and self._index is not None:
                # It went to the file because the segment was closed, or almost sealed.
                self._index.keep(self._index.entry_count - 1)
            self._running = HiddenStretch(
                last.first_offset, header.next_offset, last.position, end, largest_ms
            )
            return
        self._put_away()
        self._running = HiddenStretch(
            header.base_offset, header.next_offset, position, end, largest_ms
        )

    def _put_away(self) -> None:
        if self._running is not None:
            if self._index is None:
                self._index = HiddenIndex(self._handles, self._path, self._base_offset)
            self._index.append(self._running)
            self._running = None

    def cut(self, position: int, next_offset: int) -> None:
        """The segment now ends at `position`, and its last batch in front of `next_offset`."""
        running, index = self._running, self._index
        self.run_start = None
        if running is not None and running.position >= position:
            self._running = None
        if index is not None and index.last_entry.end > position:
            count = index.number_ending_behind(position)
            split = index.entry(count) if count < index.entry_count else None
            index.keep(count)
            if split is not None and split.position < position:
                self._running = split
        elif index is not None:
            index.keep(index.entry_count)  # A failed write may have left more behind.
        if self._running is not None and self._running.end > position:
            self._running = self._running._replace(next_offset=next_offset, end=position)

    def clear(self) -> None:
        """Forget all, before `note` is told of each hidden batch in turn."""
        self._running = self.run_start = None
        if self._index is not None:
            self._index.clear()

    def finish(self) -> None:
        """Have all in the file."""
        self._put_away()
        if self._index is not None:
            self._index.write_out()

    def trim(self) -> None:
        """The segment is sealed."""
        self.finish()
        if self._index is not None:
            self._index.trim()

    # -- files -----------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make the stretches durable, and the file's name if this object brought it about."""
        if self._index is not None:
            self._index.sync()
            if not self._name_is_durable:
                self._handles.files.sync_dir(os.path.dirname(self._path))
                self._name_is_durable = True

    def sanity_check(self, size_bytes: int) -> None:
        """`CorruptIndexError` if the file cannot be that of a segment of this size."""
        if self._index is not None:
            self._index.sanity_check(size_bytes)

    def moved_to(self, path: str) -> None:
        """The file, if there is one, has been renamed."""
        self._path = path
        if self._index is not None:
            self._index.moved_to(path)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
