"""What compaction leaves of a batch.

A record goes if a later one has its key, if it has no key, if its transaction was aborted, or if it
is a tombstone whose time is over. A tombstone must be seen by every reader that saw what it
deletes, so it gets `delete.retention.ms`: the first pass that covers it writes the moment at which
that ends, the delete horizon, into its batch (attribute bit 6, in the place of the base timestamp),
and a pass after that moment drops it. Transaction markers that nobody needs go the same way.

A batch keeps its offsets, its producer's numbers, its leader epoch, its codec and the type of its
timestamps, and batches are never merged. If nothing changes, it is copied byte for byte. If all of
its records go, it goes too, except that its bare header stays in two cases:

- It is the last batch of a producer that is still active: it has the sequence number that the
  producer's next batch is checked against. An active producer of which only a marker is left keeps
  that marker whole, for its epoch.
- It is the last batch of what becomes one segment. So a segment always says where it ends, which
  is how an interrupted swap is finished, and how recovery tells a compacted log from a torn one.

What lies beyond the offset map's latest offset is copied as it is: a later pass decides on it. This
is also why a batch gets its delete horizon only when the map covers all of it. (Kafka removes
aborted records and sets horizons there too; a tombstone's time could then begin before anybody
could have seen what it deletes disappear.)

Delayed batches are copied as they are: what becomes of their records is not for compaction to say.
A log has some if its topic was not compacted before. Of what was delivered the last batch of copies
stays as it is too: it says how far deliveries are, and whoever reads the log without it, as a new
replica does, would deliver again.

Messages of the old formats are copied too if nothing changes, and otherwise become batches of the
current one, where there is a place for a delete horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headwater.storage.compaction.cleaned_transactions import CleanedTransactions
from headwater.storage.compaction.offset_map import OffsetMap
from headwater.storage.compaction.record_slices import (
    RecordSlice,
    batch_of_slices,
    batch_without_records,
    read_section,
    slice_records,
)
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.log_config import LONG_MAX
from headwater.storage.segments.batch_scan import ScannedBatch, validate_entry
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.records import (
    MAGIC_V2,
    BatchHeader,
    Buffer,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    read_batch_header,
)


class LastBatch(NamedTuple):
    """The last trace of an active producer: its last data, or its epoch if there is only that."""

    producer_epoch: int
    last_offset: int | None


@dataclass(slots=True)
class FilterStats:
    """What became of the records; each that was read is in exactly one of the counts below it."""

    records_read: int = 0
    records_kept: int = 0
    superseded: int = 0
    tombstones_expired: int = 0
    without_key: int = 0
    aborted: int = 0
    markers_expired: int = 0
    #: Batches of which only the header stayed.
    batches_emptied: int = 0


class FilteredBatch(NamedTuple):
    data: Buffer
    header: BatchHeader
    is_changed: bool


class CompactionFilter:
    """Given all batches of a pass in the order of the log."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        active_producers: Mapping[int, LastBatch],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self.stats = FilterStats()
        self._offsets = offsets
        self._transactions = transactions
        self._active_producers = active_producers
        self._now_ms = now_ms
        self._delete_horizon_ms = min(now_ms + delete_retention_ms, LONG_MAX)

    def apply(self, batch: ScannedBatch, *, is_last: bool = False) -> FilteredBatch | None:
        """What to write in the place of a batch, None for nothing.

        `is_last` says that no batch follows it in its segment.
        """
        header = batch.header
        validate_entry(batch.data, 0, header)
        if header.magic < MAGIC_V2:
            return self._apply_to_messages(batch, is_last)
        if header.is_delayed:
            self._transactions.observe_data(header)
            return self._unchanged(batch)
        if header.producer_id == DELIVERY_PRODUCER_ID and self._is_last_trace(header):
            return self._unchanged(batch)
        is_needless = (
            self._transactions.observe_control(header, batch.data)
            if header.is_control
            else self._transactions.observe_data(header)
        )
        if header.base_offset > self._offsets.latest_offset:
            return self._unchanged(batch)
        if header.is_control:
            return self._apply_to_control(batch, is_needless, is_last)
        if is_needless:
            self.stats.records_read += header.record_count
            self.stats.aborted += header.record_count
            return self._emptied(batch, is_last)
        return self._apply_to_data(batch, is_last)

    def take_needed_entry(self) -> AbortedTransaction | None:
        """What the transaction index needs for the batch just looked at, if it was a marker."""
        return self._transactions.take_needed_entry()

    # -- kinds of batches ------------------------------------------------------------------------

    def _apply_to_data(self, batch: ScannedBatch, is_last: bool) -> FilteredBatch | None:
        header = batch.header
        section = read_section(batch.data, header)
        slices = slice_records(section, header)
        kept = self._kept(slices, header.delete_horizon_ms)
        if not kept:
            return self._emptied(batch, is_last)
        if self._needs_horizon(header, kept):
            offsets = {offset for _, _, offset, _, _ in kept}
            records = [r for r in decode_batch(batch.data, check_crc=False) if r.offset in offsets]
            return _changed(self._with_horizon(header, records))
        if len(kept) == len(slices):
            return FilteredBatch(batch.data, header, False)
        return _changed(batch_of_slices(header, section, kept))

    def _needs_horizon(self, header: BatchHeader, kept: list[RecordSlice]) -> bool:
        return (
            header.delete_horizon_ms is None
            and header.last_offset <= self._offsets.latest_offset
            and not all(has_value for _, _, _, _, has_value in kept)
        )

    def _apply_to_control(
        self, batch: ScannedBatch, is_needless: bool, is_last: bool
    ) -> FilteredBatch | None:
        header = batch.header
        stats = self.stats
        stats.records_read += header.record_count
        if header.record_count == 0:
            return self._emptied(batch, is_last)
        if not is_needless or self._is_last_trace(header):
            stats.records_kept += header.record_count
            return FilteredBatch(batch.data, header, False)
        if self._is_over(header.delete_horizon_ms):
            stats.markers_expired += header.record_count
            return self._emptied(batch, is_last)
        stats.records_kept += header.record_count
        if header.delete_horizon_ms is not None:
            return FilteredBatch(batch.data, header, False)
        records = decode_batch(batch.data, check_crc=False)
        return _changed(self._with_horizon(header, records))

    def _apply_to_messages(self, batch: ScannedBatch, is_last: bool) -> FilteredBatch | None:
        """Old messages: one, or those that a wrapper holds, whose own offset is its last."""
        header = batch.header
        records = decode_batch(batch.data, check_crc=False)
        slices = [
            (number, number + 1, record.offset, record.key, record.value is not None)
            for number, record in enumerate(records)
        ]
        kept = [records[number] for number, *_ in self._kept(slices, None)]
        covered = header.last_offset <= self._offsets.latest_offset
        has_tombstones = any(record.value is None for record in kept)
        if len(kept) == len(records) and not (has_tombstones and covered):
            return FilteredBatch(batch.data, header, False)
        if not kept and not is_last:
            return None
        return _changed(
            encode_batch(
                kept,
                compression=header.compression,
                timestamp_type=_message_timestamp_type(header),
                base_offset=records[0].offset,
                last_offset_delta=header.last_offset - records[0].offset,
                max_timestamp=None if kept else header.max_timestamp,
                delete_horizon_ms=self._delete_horizon_ms if has_tombstones and covered else None,
            )
        )

    # -- single decisions ------------------------------------------------------------------------

    def _kept(self, slices: list[RecordSlice], delete_horizon_ms: int | None) -> list[RecordSlice]:
        """The records that stay. Every record of a log passes through here."""
        keeps_tombstones = not self._is_over(delete_horizon_ms)
        latest_offset = self._offsets.latest_offset
        get = self._offsets.get
        kept: list[RecordSlice] = []
        without_key = superseded = tombstones_expired = 0
        for each in slices:
            _, _, offset, key, has_value = each
            if offset <= latest_offset:
                if key is None:
                    without_key += 1
                    continue
                if get(key) > offset:
                    superseded += 1
                    continue
                if not has_value and not keeps_tombstones:
                    tombstones_expired += 1
                    continue
            kept.append(each)
        stats = self.stats
        stats.records_read += len(slices)
        stats.records_kept += len(kept)
        stats.without_key += without_key
        stats.superseded += superseded
        stats.tombstones_expired += tombstones_expired
        return kept

    def _is_over(self, delete_horizon_ms: int | None) -> bool:
        return delete_horizon_ms is not None and delete_horizon_ms <= self._now_ms

    def _is_last_trace(self, header: BatchHeader) -> bool:
        """Whether an active producer would be forgotten without this batch."""
        last = self._active_producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset is None:
            return header.is_control and header.producer_epoch == last.producer_epoch
        return header.last_offset == last.last_offset

    # -- outcomes --------------------------------------------------------------------------------

    def _unchanged(self, batch: ScannedBatch) -> FilteredBatch:
        self.stats.records_read += batch.header.record_count
        self.stats.records_kept += batch.header.record_count
        return FilteredBatch(batch.data, batch.header, False)

    def _emptied(self, batch: ScannedBatch, is_last: bool) -> FilteredBatch | None:
        header = batch.header
        if not is_last and not self._is_last_trace(header):
            return None
        self.stats.batches_emptied += 1
        if header.record_count == 0:
            return FilteredBatch(batch.data, header, False)
        return _changed(batch_without_records(header))

    def _with_horizon(self, header: BatchHeader, records: list[Record]) -> bytes:
        return encode_batch(
            records,
            compression=header.compression,
            timestamp_type=header.timestamp_type,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            control=header.is_control,
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            delete_horizon_ms=self._delete_horizon_ms,
        )


def _changed(data: bytes) -> FilteredBatch:
    return FilteredBatch(data, read_batch_header(data), True)


def _message_timestamp_type(header: BatchHeader) -> TimestampType:
    # Magic 0 has no timestamps, and the bit means nothing in it.
    return header.timestamp_type if header.magic else TimestampType.CREATE_TIME
