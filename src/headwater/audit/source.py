"""A partition that this broker leads and counts, from one published stretch to the next.

Two kinds are counted: what users' partitions hold, by batch headers, and what the partitions of
`__consumer_offsets` say of groups, by their records. Both are read up to the last stable offset: in
front of it nothing is ever cut off, and every transaction has ended.
"""

from __future__ import annotations

from typing import Final

from headwater.audit.append_times import AppendTimes
from headwater.audit.batch_counts import PRODUCERS_MAX, BatchCounts
from headwater.audit.commit_counts import CommitBatch, CommitCounts, OutsideCommits
from headwater.audit.header_scan import plan_header_scan
from headwater.audit.header_times import with_header_times
from headwater.audit.log_starts import LogStarts
from headwater.audit.rows import NO_EPOCH, OFFSETS_TOPIC, Row, encode_row
from headwater.audit.shard import NOTHING_PUBLISHED, Published, Stretch
from headwater.audit.under_way import Facts, UnderWay, row_apart
from headwater.base.durations import LONG_MAX
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
        self.log_starts = LogStarts(partition.log_start_offset)
        #: How many refusals were published.
        self._refusals_told = self._refusals
        self._under_way: UnderWay | None = None
        self._apart_ms = 0
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
        if self._under_way is not None:
            start = min(self._under_way.stretch[1:3])
        elif counts is not None:
            # Where nothing was found, nothing is to be told either.
            start = counts.to_offset if counts.is_empty else counts.from_offset
        return max(self.partition.last_stable_offset - start, 0)

    @property
    def has_untold(self) -> bool:
        """Whether there is something to publish, apart from what is still to be counted."""
        return self.is_counted or self._under_way is not None or self._has_facts

    @property
    def is_counted(self) -> bool:
        """Whether something is counted that is not under way."""
        return self.counts is not None and not self.counts.is_empty

    @property
    def _has_facts(self) -> bool:
        has_facts = self._refusals != self._refusals_told or bool(self.log_starts.untold)
        return has_facts and not self.is_commits

    @property
    def is_full(self) -> bool:
        """Whether what is counted must be published before more is."""
        return self.counts is not None and self.counts.is_full

    @property
    def has_more(self) -> bool:
        start = self.partition.log_start_offset if self.counts is None else self.counts.to_offset
        return self.partition.last_stable_offset > start

    def begin(self, published: Published, bucket_ms: int, oldest_ms: int, now_ms: int) -> None:
        """Count from where the last published stretch ended, or from the first that matters."""
        self._under_way = None
        start = published.offset
        if published.offset == NOTHING_PUBLISHED:
            start = self._first_offset(oldest_ms)
        elif (end := self._end_of(published.leader_epoch)) < published.offset:
            # What was counted is not there: what takes its offsets is counted anew.
            self._under_way = self._loss(published.offset, end, now_ms)
            start = end
        self._count_from(start, bucket_ms)

    def _count_from(self, start: int, bucket_ms: int) -> None:
        if self.is_commits:
            self.counts = CommitCounts(start, bucket_ms)
        else:
            self.counts = BatchCounts(start, bucket_ms)

    def _end_of(self, leader_epoch: int) -> int:
        """Where the records end that leaders wrote up to that epoch, as this log has them.

        An unclean election and a lost disk take records that were counted, and another leader may
        have written in their place since: the end of the log alone does not tell.
        """
        if leader_epoch > self.leader_epoch:
            return LONG_MAX  # Another broker leads, and this one has not heard of it yet.
        if leader_epoch != NO_EPOCH:
            end = self.partition.end_offset_for(leader_epoch).end_offset
            if end >= 0:
                return end
        return self.partition.log_end_offset

    def _loss(self, published_offset: int, end: int, now_ms: int) -> UnderWay:
        row = {
            **self._names(now_ms),
            "from_offset": published_offset,
            "to_offset": end,
            "lost_offsets": published_offset - end,
        }
        return row_apart(row, Facts(self._refusals_told, 0, []))

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

    def stretch(self, now_ms: int, bucket_ms: int) -> Stretch | None:
        """What is not published yet, one thing after the other; None if that is nothing."""
        if self._under_way is None:
            self._under_way = self._next_stretch(now_ms, bucket_ms)
        return None if self._under_way is None else self._under_way.stretch

    def _next_stretch(self, now_ms: int, bucket_ms: int) -> UnderWay | None:
        counts = self.counts
        if counts is None:
            return None
        starts = list(self.log_starts.untold)
        facts = Facts(self._refusals, self.partition.log_start_offset, starts)
        if not counts.is_empty:
            records = [encode_row(row) for row in self._rows(counts, facts, now_ms)]
            stretch = Stretch(self.name, counts.from_offset, counts.to_offset, records)
            record_count = counts.record_count if isinstance(counts, BatchCounts) else 0
            self._count_from(counts.to_offset, bucket_ms)
            return UnderWay(stretch, facts, record_count)
        if self._has_facts:
            place = {"from_offset": counts.from_offset, "to_offset": counts.from_offset}
            # Rows are named by their time, and none may be taken for another.
            self._apart_ms = max(now_ms, self._apart_ms + 1)
            told = facts.row(self._refusals_told)
            return row_apart({**self._names(self._apart_ms), **place, **told}, facts)
        return None

    def _names(self, now_ms: int) -> Row:
        topic, number = self.partition.topic_partition
        return {
            "time": now_ms,
            "host": self._host,
            "source": self.name,
            "topic": topic,
            "partition": number,
            "topic_id": str(self.partition.topic_id),
            "leader_epoch": self.leader_epoch,
        }

    def _rows(self, counts: BatchCounts | CommitCounts, facts: Facts, now_ms: int) -> list[Row]:
        names = self._names(now_ms)
        if isinstance(counts, CommitCounts):
            # They are about the topics whose offsets are committed.
            names["source_partition"] = names.pop("partition")
            del names["topic"], names["topic_id"]
            return counts.rows(names)
        told = facts.row(self._refusals_told)
        told["points"] = self.times.points_until(counts.to_offset)
        return counts.rows(names, told, self.partition.client_ids or {})

    def published(self) -> int:
        """What went out is written down for good; how many records that told of."""
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return 0
        self._refusals_told = under_way.facts.refusals
        self.log_starts.told(under_way.facts.log_starts)
        self.times.drop_before(under_way.stretch.to_offset)
        self._forget_clients()
        return under_way.record_count

    def refused(self) -> None:
        """Somebody else published meanwhile: ask, and go on from there."""
        self.counts = self._under_way = None

    def _forget_clients(self) -> None:
        """Make room for new ones: producers that the log has forgotten need no name."""
        names = self.partition.client_ids
        if names is not None and len(names) >= PRODUCERS_MAX:
            entry = self.partition.log.producer_states.entry
            for producer_id in [each for each in names if entry(each) is None]:
                del names[producer_id]
