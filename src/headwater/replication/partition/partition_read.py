"""Reading a partition: as far as a consumer may see, or to the very end for another replica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.log_reads import LogRead
from headwater.storage.partition_log import PartitionLog

#: A log whose consumers see everything as soon as it is safe has no end of its own for them.
NOT_DELAYED: Final = -1


class PartitionRead(NamedTuple):
    """What a reader gets, and how far the partition was when it was read.

    Consumers are told offsets that they can reach: see `PartitionLog.visible_end`.
    """

    log_read: LogRead
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    #: None for readers who see uncommitted records too.
    aborted: Sequence[AbortedTransaction] | None
    #: For another replica: how far consumers see the log; -1 if they see all of it at once.
    shown_end: int = NOT_DELAYED


def read_for_consumer(
    log: PartitionLog,
    offset: int,
    max_bytes: int,
    *,
    committed_only: bool = False,
    min_one_batch: bool = False,
) -> PartitionRead:
    """Batches from the one that holds `offset`, as far as a consumer may see them."""
    high_watermark = log.high_watermark
    stable = log.last_stable_offset
    upper = stable if committed_only else high_watermark
    has_hidden = log.has_hidden
    # Nothing empties batches but compaction, so other logs are not looked through for such.
    read_log = log.read_records if has_hidden or log.config.is_compacted else log.read
    read = read_log(offset, max_bytes, upper_offset=upper, min_one_batch=min_one_batch)
    aborted = None
    if committed_only:
        aborted = log.aborted_transactions(offset, read.upper_offset) if read.size > 0 else ()
    if has_hidden:
        is_stable = stable == high_watermark
        high_watermark = log.visible_end(high_watermark)
        stable = high_watermark if is_stable else log.visible_end(stable)
    return PartitionRead(read, high_watermark, stable, log.log_start_offset, aborted)


def read_for_follower(
    log: PartitionLog, offset: int, max_bytes: int, *, min_one_batch: bool = False
) -> PartitionRead:
    """The same for another replica, which copies all that there is."""
    read = log.read(offset, max_bytes, min_one_batch=min_one_batch)
    return PartitionRead(
        read,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        None,
        NOT_DELAYED if log.shown_end is None else log.shown_end,
    )


def nothing_for_follower(log: PartitionLog) -> PartitionRead:
    """How far the partition is, for a replica that must wait for its records."""
    return PartitionRead(
        LogRead(None, log.log_end_offset),
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        None,
        NOT_DELAYED if log.shown_end is None else log.shown_end,
    )
