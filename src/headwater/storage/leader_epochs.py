"""Which leader wrote which part of a log: leader epoch -> first offset of that epoch.

Every change of leader raises a partition's leader epoch by one, and each batch carries the epoch of
the leader that wrote it. By this table a replica that comes back finds out where its log departs
from the leader's. It asks the leader for the end of its own last epoch; the leader answers with the
start of the next epoch that it knows, or with its log end if there is none. Everything behind that
offset was never written by this leader's line, and only that is truncated. Truncating to the high
watermark instead, as Kafka did before, loses records or lets logs diverge when replicas fail in
short order, because a follower's high watermark lags behind.

Epochs and offsets both rise strictly. Nobody waits for the disk to change the table: an election
may bring new epochs to thousands of logs at once. The file follows with the next flush of the log,
and until then the log's recovery point stays in front of what the file lacks (`unwritten_from`): so
recovery reads those records again, and finds their epochs in them. After a crash the file may also
have entries too many; loading a log truncates the table to the log's bounds.
"""

from __future__ import annotations

import errno
import logging
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.checks import check
from headwater.storage.checkpoints import format_table, parse_integer, parse_table
from headwater.storage.files import FileSystem, read_bytes, write_atomically

_logger = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class EpochEntry(NamedTuple):
    """An epoch and the offset of the first record that its leader wrote."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """One past the last offset of an epoch."""

    epoch: int
    end_offset: int


class EpochWrite(NamedTuple):
    """A planned write of the file, which a thread may run."""

    epochs: LeaderEpochs
    version: int
    data: bytes

    def run(self) -> None:
        """Replace the file durably, unless it is newer than this already."""
        self.epochs._write(self.version, self.data)

    def run_if_there_is_room(self) -> None:
        """The same; where the disk is full the file stays as it is, for a later attempt."""
        try:
            self.run()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise


class LeaderEpochs:
    """The epochs of one partition, kept in its directory. Its owner is the partition's log."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        #: Counts the changes; the file has those up to `_written_version`.
        self._version = 0
        self._written_version = 0
        self._unwritten_from: int | None = None
        #: What the file holds, so that recovery, which finds the same again, writes nothing.
        self._written: bytes | None = None
        #: The owner and a thread may both be about to write the file.
        self._lock = threading.Lock()

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
        loaded._written_version = loaded._version
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
        return bool(self._epochs) and self._epochs[-1] == epoch

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
        return self._written_version != self._version

    @property
    def unwritten_from(self) -> int | None:
        """From this offset on the file does not say which epoch wrote what; None if it does."""
        return self._unwritten_from if self.is_dirty else None

    # -- changing --------------------------------------------------------------------------------

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records of `epoch` begin at `start_offset`, unless it is known to have begun before.

        Entries that contradict the new one are replaced: the newer leader is right.
        """
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._start_offsets[-1]:
            return  # As for nearly every append.
        self._assign(epoch, start_offset)

    def assign_all(self, entries: Iterable[EpochEntry]) -> None:
        """The same for several."""
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    def _assign(self, epoch: int, start_offset: int) -> None:
        epochs, start_offsets = self._epochs, self._start_offsets
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
        self._changed(min([start_offset, *start_offsets[kept : kept + 1]]))
        epochs[kept:] = [epoch]
        start_offsets[kept:] = [start_offset]

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: forget epochs that start there or later."""
        if end_offset < 0:
            return
        kept = bisect_left(self._start_offsets, end_offset)
        if kept < len(self._epochs):
            del self._epochs[kept:]
            del self._start_offsets[kept:]
            self._changed(end_offset)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch that wrote there starts there too."""
        first = bisect_right(self._start_offsets, start_offset) - 1
        if first > 0 or (first == 0 and self._start_offsets[0] != start_offset):
            del self._epochs[:first]
            del self._start_offsets[:first]
            self._start_offsets[0] = start_offset
            self._changed(None)  # Loading does the same again.

    def clear(self) -> None:
        """Forget all epochs."""
        if self._epochs:
            self._epochs.clear()
            self._start_offsets.clear()
            self._changed(0)

    # -- the file --------------------------------------------------------------------------------

    def plan_write(self) -> EpochWrite | None:
        """What brings the file up to date; None if it is."""
        if not self.is_dirty:
            return None
        lines = (f"{epoch} {start}" for epoch, start in self.entries)
        return EpochWrite(self, self._version, format_table(lines))

    def flush(self) -> None:
        """Write the file here and now, if it lags behind."""
        write = self.plan_write()
        if write is not None:
            write.run()

    def moved_to(self, directory: str) -> None:
        """The partition's directory has been renamed."""
        self._directory = directory

    def _changed(self, from_offset: int | None) -> None:
        """What the file says of offsets from this one on is not right any more."""
        known = self.unwritten_from
        if known is None or (from_offset is not None and from_offset < known):
            self._unwritten_from = from_offset
        self._version += 1

    def _write(self, version: int, data: bytes) -> None:
        with self._lock:
            if version > self._written_version:
                if data != self._written:
                    write_atomically(self._files, self.path, data)
                    self._written = data
                self._written_version = version


def _parse_entry(line: str) -> EpochEntry:
    fields = line.split()
    if len(fields) != 2:
        raise ValueError("it should have an epoch and an offset")
    entry = EpochEntry(parse_integer(fields[0], 32), parse_integer(fields[1], 64))
    if min(entry) < 0:
        raise ValueError("neither an epoch nor its first offset can be negative")
    return entry
