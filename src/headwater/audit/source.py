"""A partition that this broker leads and counts, from one published stretch to the next.

Two kinds are counted: what users' partitions hold, by batch headers, and what the partitions of
`__consumer_offsets` say of groups, by their records. Both are read up to the last stable offset: in
front of it nothing is ever cut off, and every transaction has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import sub
from typing import Final

from headwater.audit.append_times import AppendTimes
from headwater.audit.batch_counts import BatchCounts
from headwater.audit.commit_counts import CommitBatch, CommitCounts, OutsideCommits
from headwater.audit.header_scan import plan_header_scan
from headwater.audit.header_times import with_header_times
from headwater.audit.rows import OFFSETS_TOPIC, AuditRecord, Row, encode_row
from headwater.audit.shard import NOTHING_PUBLISHED, Stretch
from headwater.base.threads import RunInThread
from headwater.coordinator.shard_log import whole_batches
from headwater.replication.partition.partition import Partition
from headwater.wire.records import BatchHeader

_COMMITS_SLICE_BYTES: Final = 1 << 20
_RECORDS_SLICE_BYTES: Final = 1 << 20


class Source:
    """One partition in one leader epoch; the owner is the publisher."""

    def __init__(self, partition: Partition, host: str) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        topic, number = partition.topic_partition
        self.is_commits = topic == OFFSETS_TOPIC
        #: A topic that was deleted and made anew is another source.
        self.name = f"{topic}/{partition.topic_id}/{number}"
        self._host = host
        self.times = AppendTimes(partition.log_end_offset)
        self.counts: BatchCounts | CommitCounts | None = None
        #: How many refusals were published, and are about to be.
        self._refusals_told = self._refusals_telling = self._refusals
        partition.client_ids = {}

    @property
    def _refusals(self) -> tuple[int, int]:
        return self.partition.duplicates_refused, self.partition.gaps_refused

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition in the same epoch."""
        partition = self.partition
        return (
            partition.is_leader
            and not partition.is_removed
            and partition.leader_epoch == self.leader_epoch
            and partition.log.failure is None
        )

    @property
    def behind_offsets(self) -> int:
        """How many offsets are there that are not counted yet, or not published."""
        counts, start = self.counts, self.partition.log_start_offset
        if counts is not None:
            # Where nothing was found, nothing is to be told either.
            start = counts.to_offset if counts.is_empty else counts.from_offset
        return max(self.partition.last_stable_offset - start, 0)

    @property
    def counted_records(self) -> int:
        """How many records are counted and not published."""
        return self.counts.record_count if isinstance(self.counts, BatchCounts) else 0

    @property
    def has_more(self) -> bool:
        start = self.partition.log_start_offset if self.counts is None else self.counts.to_offset
        return self.partition.last_stable_offset > start

    def begin(self, published_offset: int, bucket_ms: int, oldest_ms: int) -> None:
        """Count from where the last published stretch ended, or from the first that matters."""
        start = published_offset
        if published_offset == NOTHING_PUBLISHED:
            start = self._first_offset(oldest_ms)
        if self.is_commits:
            self.counts = CommitCounts(start, bucket_ms)
        else:
            self.counts = BatchCounts(start, bucket_ms)

    def _first_offset(self, oldest_ms: int) -> int:
        """Where segments begin that are not too old to be told of."""
        log = self.partition.log
        for segment in log.segments:
            if segment is log.segments.active or segment.latest.timestamp >= oldest_ms:
                return max(segment.base_offset, log.log_start_offset)
        return log.log_start_offset

    # -- counting --------------------------------------------------------------------------------

    async def count_slice(self, run_in_thread: RunInThread) -> bool:
        """Read on; whether there is more. Raises OSError and `KafkaError` of the log."""
        counts, log = self.counts, self.partition.log
        upper = log.last_stable_offset
        if counts is None or counts.is_full or counts.to_offset >= upper:
            return False
        if counts.to_offset < log.log_start_offset:
            counts.skip_to(log.log_start_offset)
        if isinstance(counts, CommitCounts):
            return await self._count_commits(counts, upper, run_in_thread)
        if log.config.audits_by_header:
            return await self._count_by_id_times(counts, upper, run_in_thread)
        scan = plan_header_scan(log, counts.to_offset, upper)
        if scan is None:
            counts.add((), upper, (), self.times)
            return False
        found = await run_in_thread(scan.run)
        aborted = log.aborted_transactions(counts.to_offset, found.next_offset)
        has_grown = found.next_offset > counts.to_offset
        counts.add(found.headers, found.next_offset, aborted, self.times)
        return has_grown and found.next_offset < upper

    async def _count_by_id_times(
        self, counts: BatchCounts, upper: int, run_in_thread: RunInThread
    ) -> bool:
        """The same with whole batches, since the times stand in their records."""
        log, start = self.partition.log, counts.to_offset
        read = log.read(start, _RECORDS_SLICE_BYTES, upper_offset=upper, min_one_batch=True)
        region = read.region
        if region is None:
            counts.add((), upper, (), self.times)
            return False
        bytes_max = log.config.max_decompressed_message_bytes

        def headers() -> list[BatchHeader]:
            batches = whole_batches(region.read())
            in_front = [each for each in batches if each[1].next_offset <= upper]
            return with_header_times(in_front, bytes_max)

        found = await run_in_thread(headers)
        next_offset = found[-1].next_offset if found else upper
        # A batch that begins in front of it was counted before.
        new = [header for header in found if header.base_offset >= start]
        counts.add(new, next_offset, log.aborted_transactions(start, next_offset), self.times)
        return start < next_offset < upper

    async def _count_commits(
        self, counts: CommitCounts, upper: int, run_in_thread: RunInThread
    ) -> bool:
        log = self.partition.log
        read = log.read(
            counts.to_offset, _COMMITS_SLICE_BYTES, upper_offset=upper, min_one_batch=True
        )
        region = read.region
        if region is None:
            counts.skip_to(upper)
            return False
        start = counts.to_offset
        batches = [
            CommitBatch(header, data)
            for data, header in whole_batches(await run_in_thread(region.read))
            if start <= header.base_offset and header.next_offset <= upper
        ]
        counts.add(batches, log.aborted_transactions(start, upper))
        return start < counts.to_offset < upper

    def add_outside_commits(self, outside: OutsideCommits) -> None:
        """Some of the commits that were counted came from outside of a group."""
        if isinstance(self.counts, CommitCounts):
            self.counts.note_outside(outside)

    # -- publishing ------------------------------------------------------------------------------

    def stretch(self, now_ms: int) -> Stretch | None:
        """What is counted and not published; None if that is nothing."""
        counts = self.counts
        if counts is None or counts.is_empty:
            return None
        rows = self._rows(counts, now_ms)
        records: list[AuditRecord] = [encode_row(row) for row in rows]
        return Stretch(self.name, counts.from_offset, counts.to_offset, records)

    def _rows(self, counts: BatchCounts | CommitCounts, now_ms: int) -> list[Row]:
        partition = self.partition
        topic, number = partition.topic_partition
        names: Row = {"time": now_ms, "host": self._host, "source": self.name}
        if isinstance(counts, CommitCounts):
            return counts.rows({**names, "source_partition": number})
        names |= {"topic": topic, "partition": number, "topic_id": str(partition.topic_id)}
        self._refusals_telling = self._refusals
        duplicates, gaps = map(sub, self._refusals, self._refusals_told)
        facts = {
            "duplicates_refused": duplicates,
            "gaps_refused": gaps,
            "log_start_offset": partition.log_start_offset,
            "leader_epoch": self.leader_epoch,
            "points": self.times.points_until(counts.to_offset),
        }
        client_ids: Mapping[int, str] = partition.client_ids or {}
        return counts.rows(names, facts, client_ids)

    def published(self, bucket_ms: int) -> None:
        """What was counted is written down for good: begin the next stretch."""
        counts = self.counts
        if counts is not None:
            self._refusals_told = self._refusals_telling
            self.times.drop_before(counts.to_offset)
            self.begin(counts.to_offset, bucket_ms, 0)
