"""A log beside a plain model of what compaction must leave of it.

The model keeps every record that was ever written, and knows of each whether its transaction was
committed. A pass of compaction up to an offset then leaves, of what lies before that offset, the
last committed record of each key, minus tombstones whose time was over when the pass began; what
lies behind it stays as it is. Everything else that must hold is checked here too: a reader of
committed data sees the same with and without the removed records, any offset can be read from,
batches keep their headers, producers are recognised, segments follow each other without a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from headwater.base.clocks import ManualClock
from headwater.sim.campaigns.logs import NOW_MS, PARTITION
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import CleanedGroup, CompactionResult
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.compaction.offset_map import ENTRY_BYTES
from headwater.storage.compaction.segment_swap import CompactionTicket, swap_now
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.segments.segment_files import SNAPSHOT, parse_segment_file_name
from headwater.wire.records import (
    BatchHeader,
    Compression,
    ControlType,
    Record,
    decode_batch,
    encode_batch,
    encode_end_transaction_marker,
)
from tests.support.logs.log_consumer import read_batches, read_committed

DIRECTORY = "/data/topic-0"
SMALL = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    file_delete_delay_ms=0,
    delete_retention_ms=1_000,
    retention_ms=-1,
)


@dataclass
class ModelBatch:
    """A batch as it was written."""

    header: BatchHeader
    records: list[Record]
    #: None while its transaction is open.
    is_committed: bool | None = True
    delete_horizon_ms: int | None = None


@dataclass
class RecoveryPoint:
    """What a log directory's checkpoint says of the log."""

    offset: int = 0

    def keep(self, offset: int) -> None:
        self.offset = offset


@dataclass
class CompactedLog:
    """The log, its model, and what a broker would keep beside it."""

    files: FileSystem
    config: LogConfig = SMALL
    handle_count: int = 50
    now_ms: int = NOW_MS
    first_dirty_offset: int = 0
    batches: list[ModelBatch] = field(default_factory=list)
    #: What must be in the log: records by offset.
    stored: dict[int, Record] = field(default_factory=dict)
    #: Each producer's next sequence, and its last batch with the offset that it got.
    sequences: dict[int, int] = field(default_factory=dict)
    last_sent: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    open_transactions: set[int] = field(default_factory=set)
    #: Puts a new segment in place; tests of the checks themselves have one that does it wrongly.
    swap: Callable[[CompactionTicket, CleanedGroup, int], bool] = swap_now

    def __post_init__(self) -> None:
        self.log = self.load(is_clean=True)

    def load(self, *, is_clean: bool, checkpoint: RecoveryPoint | None = None) -> PartitionLog:
        kept = checkpoint or RecoveryPoint()
        log = LogLoader(
            PARTITION,
            DIRECTORY,
            self.config,
            self.files,
            HandleCache(self.files, self.handle_count),
            now_ms=self.now_ms,
            is_clean=is_clean,
            recovery_point=kept.offset,
            keep_recovery_point=kept.keep,
        ).load()
        log.raise_high_watermark(log.log_end_offset)
        return log

    # -- writing ---------------------------------------------------------------------------------

    def append(
        self,
        *entries: tuple[bytes | None, bytes | None],
        compression: Compression = Compression.NONE,
        producer_id: int = -1,
        transactional: bool = False,
        timestamp: int | None = None,
    ) -> None:
        """A batch of (key, value) pairs, idempotent if it has a producer."""
        time = self.now_ms if timestamp is None else timestamp
        headers = (("h", b"1"),)
        records = [
            Record(number, time + number % 3, key, value, headers if number % 2 else ())
            for number, (key, value) in enumerate(entries)
        ]
        has_producer = producer_id >= 0
        batch = encode_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=0 if has_producer else -1,
            base_sequence=self.sequences.get(producer_id, 0) if has_producer else -1,
            transactional=transactional,
        )
        result = self.log.append_as_leader(batch, leader_epoch=3, now_ms=self.now_ms)
        assert not result.is_duplicate
        if has_producer:
            self.sequences[producer_id] = self.sequences.get(producer_id, 0) + len(records)
            self.last_sent[producer_id] = (batch, result.base_offset)
        if transactional:
            self.open_transactions.add(producer_id)
        placed = [r._replace(offset=result.base_offset + r.offset) for r in records]
        header = self._header_at(result.base_offset)
        self.batches.append(ModelBatch(header, placed, None if transactional else True))
        self.stored.update({record.offset: record for record in placed})
        self.log.raise_high_watermark(self.log.log_end_offset)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        marker = encode_end_transaction_marker(
            ControlType.COMMIT if commit else ControlType.ABORT,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=1,
            timestamp_ms=self.now_ms,
        )
        self.log.append_as_leader(
            marker, leader_epoch=3, now_ms=self.now_ms, origin=AppendOrigin.COORDINATOR
        )
        self.open_transactions.discard(producer_id)
        for batch in self.batches:
            if batch.header.producer_id == producer_id and batch.is_committed is None:
                batch.is_committed = commit
        self.log.raise_high_watermark(self.log.log_end_offset)

    def _header_at(self, offset: int) -> BatchHeader:
        segment = self.log.segments.from_offset(offset)[0]
        return next(b.header for b in segment.scan() if b.header.base_offset == offset)

    def seal(self) -> None:
        """Roll and flush, so that all that was written so far can be compacted."""
        self.log.roll(self.now_ms)
        self.log.flush()

    # -- compacting ------------------------------------------------------------------------------

    def compact(self, *, key_count_max: int = 1_000) -> CompactionResult | None:
        """One pass over the log and the model; None if nothing is dirty."""
        memory_bytes = ENTRY_BYTES * (key_count_max + 3)
        section = dirty_section(self.log, self.first_dirty_offset, self.now_ms)
        if section.first_dirty_offset >= section.first_uncleanable_offset:
            return None
        config = CleanerConfig(
            dedupe_buffer_bytes=memory_bytes,
            load_factor=key_count_max / (key_count_max + 3),
            io_buffer_bytes=300,
        )
        ticket, job = plan_compaction(section, config, self.now_ms)
        result: CompactionResult | None = None
        for item in compact(job, self.files, ManualClock()):
            if isinstance(item, CompactionResult):
                result = item
            else:
                assert self.swap(ticket, item, self.now_ms)
        assert result is not None
        self.apply_to_model(result.first_dirty_offset)
        self.first_dirty_offset = result.first_dirty_offset
        self.log.retired.remove_due(self.now_ms)
        return result

    def apply_to_model(self, end_offset: int) -> None:
        self.stored = self.left_by(end_offset)
        for batch in self.batches:
            left = [self.stored.get(record.offset) for record in batch.records]
            has_tombstone = any(record is not None and record.value is None for record in left)
            covered = batch.header.last_offset < end_offset
            if has_tombstone and covered and batch.delete_horizon_ms is None:
                batch.delete_horizon_ms = self.now_ms + self.config.delete_retention_ms

    def left_by(self, end_offset: int) -> dict[int, Record]:
        """What a pass that covers all in front of `end_offset` leaves of the records."""
        latest = {
            record.key: record.offset
            for batch in self.batches
            if batch.is_committed
            for record in batch.records
            if record.offset < end_offset
        }
        left = {}
        for batch in self.batches:
            is_over = batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= self.now_ms
            for record in batch.records:
                is_kept = record.offset >= end_offset or (
                    record.key is not None
                    and batch.is_committed is not False
                    and latest.get(record.key) == record.offset
                    and not (record.value is None and is_over)
                )
                if is_kept and record.offset in self.stored:
                    left[record.offset] = record
        return left

    # -- comparing -------------------------------------------------------------------------------

    def check(self, *, every_offset: bool = False, is_settled: bool = True) -> None:
        """Everything that must hold of the log as it is.

        Unless it is settled, a pass was cut short, and some delete horizons are set and some not.
        """
        self._check_batches(is_settled)
        self._check_segments()
        self.check_producers()
        offsets = range(self.log.log_end_offset) if every_offset else (0, *self._some_offsets())
        for offset in offsets:
            found = [record for _, records in read_batches(self.log, offset) for record in records]
            expected = [self.stored[o] for o in sorted(self.stored) if o >= offset]
            assert found == expected, f"from {offset}: {found} instead of {expected}"
            committed = read_committed(self.log, offset)
            assert committed == self._committed(offset), f"committed data from {offset}"
        self._check_timestamps()

    def _some_offsets(self) -> list[int]:
        bases = [segment.base_offset for segment in self.log.segments]
        near_bases = sorted({max(0, base + near) for base in bases for near in (-1, 0, 1)})
        return near_bases[:: len(near_bases) // 3 + 1]

    def _committed(self, offset: int) -> list[Record]:
        upper = self.log.last_stable_offset
        committed = {
            record.offset
            for batch in self.batches
            if batch.is_committed
            for record in batch.records
        }
        return [
            record
            for record_offset, record in sorted(self.stored.items())
            if offset <= record_offset < upper and record_offset in committed
        ]

    def _check_batches(self, is_settled: bool) -> None:
        """What is left of a batch still has its offsets, its producer and its codec."""
        originals = {batch.header.base_offset: batch for batch in self.batches}
        for header, records in read_batches(self.log, 0):
            if header.is_control:
                continue
            original = originals[header.base_offset]
            for name in _KEPT_FIELDS:
                assert getattr(header, name) == getattr(original.header, name), name
            if records:
                assert header.compression == original.header.compression
                assert header.max_timestamp == max(r.timestamp for r in records)
                if is_settled:
                    assert header.delete_horizon_ms == original.delete_horizon_ms

    def _check_timestamps(self) -> None:
        """The first record that is not older than a time is found, as by reading all of them."""
        batches = [batch for segment in self.log.segments for batch in segment.scan()]
        records = [record for batch in batches for record in decode_batch(batch.data)]
        times = sorted({record.timestamp for record in records})
        for time in times[:: len(times) // 4 + 1]:
            found = self.log.offset_for_timestamp(time)
            expected = next((r for r in records if r.timestamp >= time), None)
            assert (found and found.offset) == (expected and expected.offset)

    def _check_segments(self) -> None:
        """Each sealed segment reaches up to the next, and so do its indexes agree with its log."""
        for segment in self.log.segments.sealed:
            batches = list(segment.scan())
            end = batches[-1].header.next_offset
            assert end == self.log.segments.next_base_offset(segment) == segment.next_offset
            positions = {b.position: b.header for b in batches}
            for entry in segment.offset_index.entries():
                assert positions[entry.position].last_offset == entry.offset
            # Recovery looks at batches without records too.
            timestamps = [b.header.max_timestamp for b in batches]
            of_records = [b.header.max_timestamp for b in batches if b.header.record_count]
            assert segment.latest.timestamp in (max(timestamps), max(of_records, default=-1))
            segment.offset_index.sanity_check()
            segment.time_index.sanity_check()
            segment.transaction_index.sanity_check(segment.base_offset)

    def check_producers(self) -> None:
        """Who repeats its last batch is recognised; the log does not grow by that."""
        end_offset = self.log.log_end_offset
        for batch, base_offset in self.last_sent.values():
            result = self.log.append_as_leader(batch, leader_epoch=3, now_ms=self.now_ms)
            assert result.is_duplicate and result.base_offset == base_offset
        assert self.log.log_end_offset == end_offset

    # -- reopening -------------------------------------------------------------------------------

    def reopen(self, *, from_scratch: bool = False) -> None:
        """Close and open; `from_scratch` recovers all from the log files alone."""
        end_offset, stable_offset = self.log.log_end_offset, self.log.last_stable_offset
        self.log.close()
        if from_scratch:
            for name in self.files.list_dir(DIRECTORY):
                if name.endswith(SNAPSHOT):
                    self.files.remove(f"{DIRECTORY}/{name}")
        self.log = self.load(is_clean=not from_scratch)
        assert self.log.log_end_offset == end_offset
        assert self.log.last_stable_offset == stable_offset

    # -- crashes ---------------------------------------------------------------------------------

    def found_on(self, files: FileSystem, checkpoint: RecoveryPoint) -> CompactedLog:
        """The log that is opened from what a power loss left; the model knows what it should be.

        A pass may have been under way: what it removes is there or not, everything else is.
        """
        left = self.left_by(self.log.segments.active.base_offset)
        found = CompactedLog.__new__(CompactedLog)
        found.__dict__.update(self.__dict__)
        found.files, found.swap = files, swap_now
        found.batches = deepcopy(self.batches)
        found.log = found.load(is_clean=False, checkpoint=checkpoint)
        assert found.log.log_end_offset == self.log.log_end_offset
        assert found.log.last_stable_offset == self.log.last_stable_offset
        stages = [parse_segment_file_name(name) for name in files.list_dir(DIRECTORY)]
        assert all(name is None or name.stage == "" for name in stages), stages
        found.stored = {r.offset: r for _, records in read_batches(found.log, 0) for r in records}
        lost = left.keys() - found.stored.keys()
        assert not lost, f"the records at {sorted(lost)} are lost"
        strange = found.stored.items() - self.stored.items()
        assert not strange, f"{strange} should not be there"
        return found


_KEPT_FIELDS = (
    "last_offset",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "timestamp_type",
    "is_transactional",
    "is_control",
)
