"""Which leader wrote which part of a log: leader epoch -> first offset of that epoch.

Every change of leader raises a partition's leader epoch by one, and each batch carries the epoch of
the leader that wrote it. By this table a replica that comes back finds out where its log departs
from the leader's. It asks the leader for the end of its own last epoch; the leader answers with the
start of the next epoch that it knows, or with its log end if there is none. Everything behind that
offset was never written by this leader's line, and only that is truncated. Truncating to the high
watermark instead, as Kafka did before, loses records or lets logs diverge when replicas fail in
short order, because a follower's high watermark lags behind.

Epochs and offsets both rise strictly. `assign` is durable before the records of the new epoch are
written, so the file never lacks an epoch that the log has. It may have entries too many after a
crash; loading a log truncates the table to the log's bounds again. That is why the truncations may
leave writing the file to a later `flush`.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.checks import check
from headwater.storage.checkpoints import format_table, parse_integer, parse_table
from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically

_logger = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """An epoch and the offset of the first record that its leader wrote."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """One past the last offset of an epoch."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one partition, kept in its directory. Its owner is the partition's log."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        self._is_dirty = False
        #: What the file holds, so that recovery, which finds the same again, writes nothing.
        self._written: bytes | None = None

    @classmethod
    def load(cls, files: FileSystem, directory: str) -> LeaderEpochs:
        """Read the partition's file; `CorruptCheckpointError` if it is not in its format."""
        loaded = cls(files, directory)
        try:
            data = read_bytes(files, loaded.path)
        except FileNotFoundError:
            return loaded
        for entry in parse_table(data, loaded.path, _parse_entry):
            loaded._assign(*entry)
        loaded._written = data
        return loaded

    @property
    def path(self) -> str:
        return f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"

    # -- looking ---------------------------------------------------------------------------------

    @property
    def entries(self) -> list[EpochEntry]:
        return list(map(EpochEntry, self._epochs, self._start_offsets))

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last record that was written, or is about to be."""
        return self._epochs[-1] if self._epochs else None

    def is_running(self, epoch: int) -> bool:
        """Whether `epoch` has written here last, so that another of its records changes nothing."""
        return not self._is_dirty and bool(self._epochs) and self._epochs[-1] == epoch

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that wrote `offset`, as far as the table goes; the last one has no end."""
        index = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[index] if index >= 0 else None

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch that is not above the requested one, and where it ends."""
        if requested_epoch == UNDEFINED_EPOCH:
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if requested_epoch == self.latest_epoch:
            return EpochEndOffset(requested_epoch, log_end_offset)
        index = bisect_right(self._epochs, requested_epoch)
        if index == len(self._epochs):
            # It is newer than any that was heard of here, so there is nothing to say about it.
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        # Retention may have taken all epochs up to the requested one. It ended, at the latest,
        # where the first known epoch starts, which is as far back as a replica can be helped.
        epoch = self._epochs[index - 1] if index > 0 else requested_epoch
        return EpochEndOffset(epoch, self._start_offsets[index])

    @property
    def is_dirty(self) -> bool:
        """Whether the file lags behind."""
        return self._is_dirty

    # -- changing --------------------------------------------------------------------------------

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records of `epoch` begin at `start_offset`, unless it is known to have begun before.

        Entries that contradict the new one are replaced: the newer leader is right.
        """
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._start_offsets[-1]:
            return  # As for nearly every append.
        if self._assign(epoch, start_offset):
            self._write()

    def assign_all(self, entries: Iterable[EpochEntry]) -> None:
        """The same for several, with one write of the file."""
        changed = False
        for epoch, start_offset in entries:
            changed |= self._assign(epoch, start_offset)
        if changed:
            self._write()

    def _assign(self, epoch: int, start_offset: int) -> bool:
        epochs, start_offsets = self._epochs, self._start_offsets
        if epochs and epoch == epochs[-1] and start_offset >= start_offsets[-1]:
            return False
        check(
            epoch >= 0 and start_offset >= 0,
            "%s: epoch %d cannot start at offset %d",
            self._directory,
            epoch,
            start_offset,
        )
        kept = min(bisect_left(epochs, epoch), bisect_left(start_offsets, start_offset))
        replaced = self.entries[kept:]
        # An epoch in which nothing was written is replaced by the next one at the same offset.
        if len(replaced) > 1 or any(entry.start_offset != start_offset for entry in replaced):
            _logger.warning(
                "%s: leader epoch %d from offset %d replaces %s",
                self._directory,
                epoch,
                start_offset,
                replaced,
            )
        epochs[kept:] = [epoch]
        start_offsets[kept:] = [start_offset]
        return True

    def truncate_from_end(self, end_offset: int, *, flush: bool = True) -> None:
        """The log now ends at `end_offset`: forget epochs that start there or later."""
        if end_offset < 0:
            return
        kept = bisect_left(self._start_offsets, end_offset)
        if kept < len(self._epochs):
            del self._epochs[kept:]
            del self._start_offsets[kept:]
            self._changed(flush)

    def truncate_from_start(self, start_offset: int, *, flush: bool = True) -> None:
        """The log now starts at `start_offset`: the epoch that wrote there starts there too."""
        first = bisect_right(self._start_offsets, start_offset) - 1
        if first > 0 or (first == 0 and self._start_offsets[0] != start_offset):
            del self._epochs[:first]
            del self._start_offsets[:first]
            self._start_offsets[0] = start_offset
            self._changed(flush)

    def clear(self) -> None:
        """Forget all epochs."""
        if self._epochs:
            self._epochs.clear()
            self._start_offsets.clear()
            self._write()

    # -- the file --------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the file if a truncation has left that to be done."""
        if self._is_dirty:
            self._write()

    def moved_to(self, directory: str) -> None:
        """The partition's directory has been renamed."""
        self._directory = directory

    def _changed(self, flush: bool) -> None:
        self._is_dirty = True
        if flush:
            self._write()

    def _write(self) -> None:
        lines = (f"{epoch} {start}" for epoch, start in self.entries)
        data = format_table(lines)
        if data != self._written:
            self._is_dirty = True
            write_atomically(self._files, self.path, data)
            self._written = data
        self._is_dirty = False


def _parse_entry(line: str) -> EpochEntry:
    fields = line.split()
    if len(fields) != 2:
        raise ValueError("it should have an epoch and an offset")
    entry = EpochEntry(parse_integer(fields[0], 32), parse_integer(fields[1], 64))
    if min(entry) < 0:
        raise ValueError("neither an epoch nor its first offset can be negative")
    return entry
