"""Moving a partition's log to another directory of the same broker.

The log that serves the partition is called the current one; its copy in the other directory, whose
name ends in `-future`, follows it batch by batch like a replica. It follows up to the high
watermark only: what lies behind that may yet be truncated. The few batches behind it are copied in
the moment in which the future log takes the current one's place, when nothing is appended.

That takes two renames in two directories, which no disk does at once. The future log becomes the
partition's log first, and only then the old one is marked deleted. So a crash in between leaves two
logs that hold the same, and loading keeps the one that is further on.

Log formats before version 2 are not copied: nothing has written them since Kafka 0.11.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headwater.base.ids import TopicPartition
from headwater.storage.directories.directory_entries import entry_path, log_name
from headwater.storage.directories.log_creation import LogDeletion, relocate, set_aside
from headwater.storage.directories.log_directory import LogDirectory
from headwater.storage.directories.partition_metadata import write_topic_id
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog
from headwater.storage.truncation import truncate_fully, truncate_to
from headwater.wire.records import LOG_OVERHEAD, read_batch_header

_logger = logging.getLogger(__name__)

#: How much is copied at a time: a few milliseconds of the owner's time.
COPY_BYTES = 1 << 20


class FutureLog:
    """A copy on its way. Its owner is that of both logs."""

    def __init__(
        self, current: PartitionLog, source: LogDirectory, log: PartitionLog, target: LogDirectory
    ) -> None:
        self.current = current
        self.source = source
        self.log = log
        self.target = target

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind the high watermark."""
        return max(0, self.current.high_watermark - self.log.log_end_offset)

    def follow_truncation(self, now_ms: int) -> None:
        """Cut off what the current log does not have, or has from another leader.

        An unclean election may truncate below the high watermark, and a power loss take the end of
        the current log while the copy keeps it; then something else is written there.
        """
        current, log = self.current, self.log
        end_offset = current.log_end_offset
        latest_epoch = log.leader_epochs.latest_epoch
        if latest_epoch is not None:
            known = current.leader_epochs.end_offset_for(latest_epoch, end_offset)
            if known.end_offset >= 0:
                end_offset = min(end_offset, known.end_offset)
        if end_offset < log.log_end_offset:
            truncate_to(log, end_offset, now_ms)

    def copy(self, now_ms: int, max_bytes: int = COPY_BYTES) -> int:
        """Copy some of what is below the high watermark; returns the number of bytes."""
        return self._copy(self.current.high_watermark, max_bytes, now_ms)

    def finish(self, now_ms: int) -> None:
        """Bring the copy to the end of the current log and make it durable."""
        current, log = self.current, self.log
        while self._copy(current.log_end_offset, COPY_BYTES, now_ms):
            continue
        if log.log_end_offset != current.log_end_offset:
            raise LogStorageError(
                f"The copy of {log.partition} ends at {log.log_end_offset}, and the log at "
                f"{current.log_end_offset}: it cannot take its place."
            )
        log.raise_log_start(current.log_start_offset)
        log.raise_high_watermark(current.high_watermark)
        log.retired.remove_due(now_ms + log.config.file_delete_delay_ms)
        log.leader_epochs.flush()
        log.flush()

    def take_over(self, now_ms: int) -> PartitionLog:
        """Let the copy be the partition's log, durably; the old one is deleted."""
        log, target = self.log, self.target
        self.finish(now_ms)
        path = entry_path(target.path, log_name(log.partition))
        topic_id = self.source.topic_ids.get(log.partition)
        with target.guarding():
            if topic_id is not None:
                # It has the id already, unless a crash came in between when it was made.
                write_topic_id(target.files, log.directory, topic_id)
                target.topic_ids[log.partition] = topic_id
            target.checkpoints.recovery_points.keep({log.partition: log.recovery_point})
            target.checkpoints.log_starts.keep({log.partition: log.log_start_offset})
            target.files.rename(log.directory, path)
            target.files.sync_dir(target.path)
        relocate(log, path)
        del target.future_logs[log.partition]
        target.logs[log.partition] = log
        try:
            with self.source.guarding():
                LogDeletion.begin(self.source, [log.partition], now_ms).run()
        except LogStorageError:
            # Its disk has failed. Whatever is found there one day is not as far as the copy.
            self.source.logs.pop(log.partition, None)
        return log

    def _copy(self, upper_offset: int, max_bytes: int, now_ms: int) -> int:
        current, log = self.current, self.log
        self.follow_truncation(now_ms)
        if log.log_end_offset < current.log_start_offset:
            truncate_fully(log, current.log_start_offset, now_ms)
        if log.log_end_offset >= upper_offset:
            return 0
        read = current.read(
            log.log_end_offset, max_bytes, upper_offset=upper_offset, min_one_batch=True
        )
        data = _whole_batches(b"" if read.region is None else read.region.read())
        if not data:
            return 0
        base_offset = read_batch_header(data).base_offset
        if base_offset < log.log_end_offset:
            # The current log starts within this batch: the copy has to hold all of it.
            truncate_fully(log, base_offset, now_ms)
        log.append_as_follower(data, now_ms=now_ms)
        log.raise_high_watermark(current.high_watermark)
        return len(data)


def _whole_batches(data: bytes) -> bytes:
    """`data` without the batch at its end that the read cut short."""
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        position += size
    return data[:position]


def settle_duplicates(directories: Sequence[LogDirectory]) -> None:
    """After a take-over that a crash cut short: let one log serve, and set the other aside.

    Nothing is thrown away, since it is not certain that this is how there came to be two.
    """
    found: dict[TopicPartition, tuple[LogDirectory, PartitionLog]] = {}
    for directory in directories:
        for log in list(directory.logs.values()):
            chosen = found.setdefault(log.partition, (directory, log))
            if chosen[1] is log:
                continue
            other = (directory, log)
            if _progress(log) > _progress(chosen[1]):
                chosen, other = other, chosen
                found[log.partition] = chosen
            _logger.error(
                "%s was in two directories: %s serves it, the other is kept as %s",
                log.partition,
                chosen[1].directory,
                set_aside(*other),
            )


def _progress(log: PartitionLog) -> tuple[int, int]:
    """The later leader knows better, and of its records the more the better."""
    epoch = log.leader_epochs.latest_epoch
    return (-1 if epoch is None else epoch, log.log_end_offset)
