"""Single batches through the filter of compaction."""

from __future__ import annotations

from dataclasses import fields

import pytest

from headwater.storage.compaction.cleaned_transactions import CleanedTransactions
from headwater.storage.compaction.compaction_filter import (
    CompactionFilter,
    FilteredBatch,
    LastBatch,
)
from headwater.storage.compaction.offset_map import OffsetMap
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.log_config import LONG_MAX
from headwater.storage.segments.batch_scan import ScannedBatch, read_entry_header
from headwater.wire.records import (
    HEADER_SIZE,
    MAGIC_V2,
    Compression,
    ControlType,
    CorruptRecordError,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    encode_end_transaction_marker,
    encode_legacy,
    read_batch_header,
)

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1_000


def make_filter(
    latest: dict[bytes, int],
    *,
    end_offset: int = 100,
    now_ms: int = NOW_MS,
    active: dict[int, LastBatch] | None = None,
    aborted: tuple[AbortedTransaction, ...] = (),
    retention_ms: int = RETENTION_MS,
) -> CompactionFilter:
    """A filter that knows the last offset of each key, and covers all in front of `end_offset`."""
    offsets = OffsetMap(10_000)
    for key, offset in latest.items():
        offsets.put(key, offset)
    offsets.latest_offset = end_offset - 1
    return CompactionFilter(
        offsets,
        CleanedTransactions(aborted),
        active or {},
        now_ms=now_ms,
        delete_retention_ms=retention_ms,
    )


def scanned(data: bytes) -> ScannedBatch:
    header = read_entry_header(data.ljust(HEADER_SIZE, b"\0"))
    return ScannedBatch(0, header, memoryview(data))


def records_of(left: FilteredBatch | None) -> list[Record]:
    assert left is not None
    records = decode_batch(left.data)
    if left.header.magic == MAGIC_V2:
        assert left.header == read_batch_header(left.data)
    return records


def record(offset: int, key: bytes | None, value: bytes | None = b"value") -> Record:
    return Record(offset, NOW_MS - 5 + offset, key, value, (("header", b"x"),))


ALL_CODECS = list(Compression)


@pytest.mark.parametrize("compression", ALL_CODECS)
def test_a_batch_in_which_nothing_changes_is_copied_byte_for_byte(compression: Compression) -> None:
    batch = encode_batch([record(3, b"a"), record(5, b"b")], compression=compression)
    left = make_filter({b"a": 3}).apply(scanned(batch))
    assert left is not None and not left.is_changed
    assert bytes(left.data) == batch


@pytest.mark.parametrize("compression", ALL_CODECS)
@pytest.mark.parametrize("timestamp_type", list(TimestampType))
def test_superseded_and_keyless_records_go(
    compression: Compression, timestamp_type: TimestampType
) -> None:
    batch = encode_batch(
        [record(1, b"a"), record(2, b"b"), record(3, None), record(4, b"a")],
        compression=compression,
        timestamp_type=timestamp_type,
        producer_id=4,
        producer_epoch=1,
        base_sequence=20,
        leader_epoch=6,
    )
    record_filter = make_filter({b"a": 4, b"b": 9})
    left = record_filter.apply(scanned(batch))
    original = read_batch_header(batch)
    assert records_of(left) == [decode_batch(batch)[3]]
    assert left is not None
    header = left.header
    assert (header.base_offset, header.last_offset) == (1, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 1, 20)
    assert (header.leader_epoch, header.compression) == (6, compression)
    assert header.timestamp_type is timestamp_type
    assert header.base_timestamp == original.base_timestamp
    stats = record_filter.stats
    assert (stats.records_read, stats.records_kept) == (4, 1)
    assert (stats.superseded, stats.without_key) == (2, 1)


def test_records_beyond_the_map_stay() -> None:
    batch = encode_batch([record(1, b"a"), record(2, b"a"), record(3, None), record(4, b"a", None)])
    left = make_filter({b"a": 2}, end_offset=3).apply(scanned(batch))
    assert [each.offset for each in records_of(left)] == [2, 3, 4]
    assert left is not None
    assert left.header.delete_horizon_ms is None, "the tombstone's time has not begun"
    beyond = scanned(encode_batch([record(5, None)]))
    left = make_filter({b"a": 2}, end_offset=3).apply(beyond)
    assert left is not None and left.data == beyond.data


@pytest.mark.parametrize("compression", ALL_CODECS)
def test_a_tombstone_waits_for_its_horizon(compression: Compression) -> None:
    batch = encode_batch(
        [record(1, b"a", None), record(2, b"b"), record(3, b"c")], compression=compression
    )
    latest = {b"a": 1, b"c": 50}
    first = make_filter(latest).apply(scanned(batch))
    assert first is not None
    horizon_ms = NOW_MS + RETENTION_MS
    assert first.header.delete_horizon_ms == horizon_ms
    assert records_of(first) == [record(1, b"a", None), record(2, b"b")], "timestamps stay"
    # The next pass does not push it further away.
    again = make_filter(latest, now_ms=horizon_ms - 1).apply(scanned(bytes(first.data)))
    assert again is not None and not again.is_changed
    record_filter = make_filter(latest, now_ms=horizon_ms)
    last = record_filter.apply(scanned(bytes(first.data)))
    assert records_of(last) == [record(2, b"b")]
    assert last is not None and last.header.delete_horizon_ms == horizon_ms
    assert record_filter.stats.tombstones_expired == 1


def test_a_horizon_does_not_outgrow_its_field() -> None:
    batch = encode_batch([record(1, b"a", None)])
    left = make_filter({}, retention_ms=LONG_MAX).apply(scanned(batch))
    assert left is not None and left.header.delete_horizon_ms == LONG_MAX
    assert records_of(left) == [record(1, b"a", None)]


def test_a_superseded_tombstone_goes_at_once() -> None:
    batch = encode_batch([record(1, b"a", None)])
    assert make_filter({b"a": 2}).apply(scanned(batch)) is None


# -- transactions and producers --------------------------------------------------------------------


def marker(offset: int, *, commit: bool = True, producer_id: int = 7, epoch: int = 0) -> bytes:
    return encode_end_transaction_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=0,
        timestamp_ms=NOW_MS,
        base_offset=offset,
    )


def transactional(offset: int, key: bytes) -> bytes:
    return encode_batch(
        [record(offset, key)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def test_aborted_records_go_and_the_index_keeps_their_entry() -> None:
    aborted = AbortedTransaction(7, 1, 2, 3)
    record_filter = make_filter({}, aborted=(aborted,))
    assert record_filter.apply(scanned(transactional(1, b"a"))) is None
    assert record_filter.stats.aborted == 1
    assert record_filter.take_needed_entry() is None
    left = record_filter.apply(scanned(marker(2, commit=False)))
    assert left is not None and not left.is_changed
    assert record_filter.take_needed_entry() == aborted


def test_a_marker_goes_two_passes_and_a_horizon_after_its_records() -> None:
    with_records = make_filter({b"a": 50})
    assert with_records.apply(scanned(transactional(1, b"a"))) is None
    left = with_records.apply(scanned(marker(2)))
    assert left is not None and not left.is_changed
    left = make_filter({}).apply(scanned(marker(2)))
    assert left is not None and left.header.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert records_of(left)[0].timestamp == NOW_MS
    early = make_filter({}, now_ms=NOW_MS + RETENTION_MS - 1).apply(scanned(bytes(left.data)))
    assert early is not None and early.data == left.data
    record_filter = make_filter({}, now_ms=NOW_MS + RETENTION_MS)
    assert record_filter.apply(scanned(bytes(left.data))) is None
    assert record_filter.stats.markers_expired == 1


def test_the_last_batch_of_an_active_producer_stays_as_a_header() -> None:
    active = {7: LastBatch(0, 1)}
    record_filter = make_filter({b"a": 50}, active=active)
    left = record_filter.apply(scanned(transactional(1, b"a")))
    assert records_of(left) == []
    assert left is not None
    assert left.header.producer_id == 7 and left.header.is_transactional
    assert record_filter.stats.batches_emptied == 1
    assert left.data == record_filter.apply(scanned(bytes(left.data)), is_last=False).data  # type: ignore[union-attr]
    assert make_filter({}, active={7: LastBatch(0, 9)}).apply(scanned(bytes(left.data))) is None
    assert make_filter({}).apply(scanned(bytes(left.data))) is None


def test_the_last_marker_of_a_producer_without_data_stays_whole() -> None:
    active = {7: LastBatch(3, None)}
    expired = make_filter({}).apply(scanned(marker(2, epoch=3)))
    assert expired is not None
    later = make_filter({}, now_ms=NOW_MS + RETENTION_MS, active=active)
    left = later.apply(scanned(bytes(expired.data)))
    assert left is not None and left.header.record_count == 1
    assert later.apply(scanned(bytes(marker(3, epoch=2)))) is not None
    assert later.stats.markers_expired == 0


def test_the_last_batch_of_a_segment_stays_as_a_header() -> None:
    record_filter = make_filter({b"a": 50})
    batch = encode_batch([record(1, b"a"), record(2, b"a")])
    left = record_filter.apply(scanned(batch), is_last=True)
    assert left is not None
    assert (left.header.base_offset, left.header.last_offset) == (1, 2)
    assert left.header.record_count == 0


def test_a_damaged_batch_ends_the_pass() -> None:
    batch = bytearray(encode_batch([record(1, b"a")]))
    batch[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        make_filter({}).apply(scanned(bytes(batch)))


# -- old formats -----------------------------------------------------------------------------------


def old(offset: int, key: bytes | None, value: bytes | None = b"value", magic: int = 1) -> Record:
    return Record(offset, NOW_MS + offset if magic else -1, key, value)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_copied_or_go(magic: int) -> None:
    message = encode_legacy([old(1, b"a", magic=magic)], magic=magic)
    left = make_filter({b"a": 1}).apply(scanned(message))
    assert left is not None and bytes(left.data) == message
    assert make_filter({b"a": 2}).apply(scanned(message)) is None
    last = make_filter({b"a": 2}).apply(scanned(message), is_last=True)
    assert last is not None and last.header.record_count == 0
    assert (last.header.magic, last.header.base_offset, last.header.last_offset) == (2, 1, 1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
def test_a_wrapper_that_loses_messages_becomes_a_batch(
    magic: int, compression: Compression
) -> None:
    records = [old(number, b"%d" % number, magic=magic) for number in (4, 5, 6, 7)]
    wrapper = encode_legacy(records, magic=magic, compression=compression)
    left = make_filter({b"5": 9, b"7": 9}).apply(scanned(wrapper))
    assert records_of(left) == [records[0], records[2]]
    assert left is not None
    header = left.header
    assert (header.base_offset, header.last_offset, header.compression) == (4, 7, compression)
    whole = make_filter({}).apply(scanned(wrapper))
    assert whole is not None and bytes(whole.data) == wrapper


def test_an_old_tombstone_becomes_a_batch_with_a_horizon() -> None:
    message = encode_legacy([old(1, b"a", None)], magic=1)
    left = make_filter({b"a": 1}).apply(scanned(message))
    assert records_of(left) == [old(1, b"a", None)]
    assert left is not None and left.header.delete_horizon_ms == NOW_MS + RETENTION_MS
    expired = make_filter({b"a": 1}, now_ms=NOW_MS + RETENTION_MS).apply(scanned(bytes(left.data)))
    assert expired is None
    early = make_filter({b"a": 1}, end_offset=1).apply(scanned(message))
    assert early is not None and bytes(early.data) == message


def test_every_record_is_counted_once() -> None:
    record_filter = make_filter({b"a": 50}, aborted=(AbortedTransaction(7, 9, 10, 11),))
    for batch in (
        encode_batch([record(1, b"a"), record(2, b"b"), record(3, None)]),
        encode_legacy([old(4, b"a"), old(5, b"c")], magic=1, compression=Compression.GZIP),
        transactional(9, b"x"),
        marker(10, commit=False),
        encode_batch([record(11, b"d", None)], delete_horizon_ms=5),
        encode_batch([record(200, b"a")]),
    ):
        record_filter.apply(scanned(batch))
    stats = record_filter.stats
    assert stats.records_read == 9
    outcomes = [
        getattr(stats, each.name)
        for each in fields(stats)
        if each.name not in ("records_read", "batches_emptied")
    ]
    assert sum(outcomes) == stats.records_read
