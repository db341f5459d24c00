"""What a leader accepts, what it refuses, and what it makes of a producer's batch."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    append_numbered,
    batch_of,
    end_transaction,
    new_disk,
    open_log,
    read_records,
)
from headwater.sim.disk.faulty_disk import Fault
from headwater.storage.append.leader import WALKED_INLINE_RECORDS_MAX, takes_long
from headwater.storage.errors import (
    InvalidTimestampError,
    LogStorageError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
from headwater.storage.log_config import LogConfig, RecordsValidation
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import (
    BatchHeader,
    Compression,
    ControlType,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    TimestampType,
    decode_records,
    encode_batch,
    encode_end_transaction_marker,
    iter_batch_headers,
    read_batch_header,
    validate_batch,
)
from headwater.wire.records.batch_header import write_crc

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
APPEND_TIME = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)


def new_log(config: LogConfig | None = None) -> PartitionLog:
    return open_log(new_disk(), DIRECTORY, config)


def all_bytes(log: PartitionLog) -> bytes:
    region = log.read(log.log_start_offset, 1 << 30).region
    return b"" if region is None else region.read()


def headers_of(log: PartitionLog) -> list[BatchHeader]:
    return [header for _, header in iter_batch_headers(all_bytes(log))]


def patched(batch: bytes, position: int, value: bytes) -> bytes:
    """The batch with other bytes in its header, and a checksum that covers them."""
    data = bytearray(batch)
    data[position : position + len(value)] = value
    write_crc(data, 0, len(data))
    return bytes(data)


def refused(log: PartitionLog, data: bytes) -> None:
    """Appending raises, which the caller catches; nothing of it may be in the log."""
    end, size = log.log_end_offset, log.size_bytes
    try:
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    finally:
        assert (log.log_end_offset, log.size_bytes) == (end, size)


# -- offsets, epochs, times ----------------------------------------------------------------------


def test_batches_get_the_next_offsets_and_the_leaders_epoch() -> None:
    log = new_log()
    first = append(log, b"a", b"b", b"c", leader_epoch=4)
    two = batch_of(b"d") + batch_of(b"e", b"f")
    second = log.append_as_leader(two, leader_epoch=5, now_ms=NOW_MS)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 5)
    assert not first.is_duplicate
    found = [(h.base_offset, h.last_offset, h.leader_epoch) for h in headers_of(log)]
    assert found == [(0, 2, 4), (3, 3, 5), (4, 5, 5)]
    assert log.leader_epochs.entries == [(4, 0), (5, 3)]
    assert [(r.offset, r.value) for r in read_records(log, 0)] == list(
        enumerate((b"a", b"b", b"c", b"d", b"e", b"f"))
    )


def test_a_producers_batch_is_written_as_it_came_but_for_offset_and_epoch() -> None:
    log = new_log()
    append(log, b"in front")
    batch = batch_of(b"a", b"b", compression=Compression.LZ4)
    result = log.append_as_leader(batch, leader_epoch=9, now_ms=NOW_MS)
    region = log.read(result.base_offset, 1 << 20).region
    assert region is not None
    expected = bytearray(batch)
    expected[0:8] = (1).to_bytes(8, "big")
    expected[12:16] = (9).to_bytes(4, "big")
    assert region.read() == expected


def test_a_bytearray_is_patched_in_place_and_other_buffers_are_left_alone() -> None:
    log = new_log()
    append(log, b"in front")
    sent = batch_of(b"a")
    log.append_as_leader(memoryview(sent), leader_epoch=0, now_ms=NOW_MS)
    assert sent == batch_of(b"a")
    own = bytearray(sent)
    log.append_as_leader(own, leader_epoch=0, now_ms=NOW_MS)
    assert own[0:8] == (2).to_bytes(8, "big")


def test_create_time_stays_and_append_time_replaces_it() -> None:
    create = new_log()
    result = append(create, b"a", b"b", timestamp=NOW_MS - 50)
    assert result.log_append_time_ms == -1
    assert [r.timestamp for r in read_records(create, 0)] == [NOW_MS - 50, NOW_MS - 49]
    at_append = new_log(APPEND_TIME)
    result = append(at_append, b"a", b"b", timestamp=NOW_MS - 50, compression=Compression.GZIP)
    assert result.log_append_time_ms == NOW_MS
    assert [r.timestamp for r in read_records(at_append, 0)] == [NOW_MS, NOW_MS]
    (header,) = headers_of(at_append)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert at_append.segments.active.latest == (NOW_MS, 1)


def test_nothing_appended_is_no_error() -> None:
    log = new_log()
    append(log, b"a")
    result = log.append_as_leader(b"", leader_epoch=0, now_ms=NOW_MS)
    assert (result.base_offset, result.last_offset, log.log_end_offset) == (1, 0, 1)


# -- compression ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", list(Compression))
@pytest.mark.parametrize("sent", list(Compression))
def test_the_topics_compression_replaces_the_producers(
    sent: Compression, wanted: Compression
) -> None:
    log = new_log(LogConfig(compression=wanted))
    values = [b"value %d " % number * 20 for number in range(5)]
    log.append_as_leader(
        batch_of(*values, compression=sent) + batch_of(b"last", compression=wanted),
        leader_epoch=3,
        now_ms=NOW_MS,
    )
    assert [h.compression for h in headers_of(log)] == [wanted, wanted]
    records = read_records(log, 0)
    assert [r.value for r in records] == [*values, b"last"]
    assert [r.timestamp for r in records] == [*range(NOW_MS, NOW_MS + 5), NOW_MS]


def test_without_a_wish_of_the_topic_each_batch_keeps_its_compression() -> None:
    log = new_log()
    for compression in Compression:
        append(log, b"v" * 100, compression=compression)
    assert [h.compression for h in headers_of(log)] == list(Compression)


def test_recompression_keeps_what_is_known_of_the_producer() -> None:
    log = new_log(LogConfig(compression=Compression.ZSTD))
    append_numbered(log, 0, b"a" * 50, b"b" * 50)
    (header,) = headers_of(log)
    assert (header.producer_id, header.base_sequence, header.compression) == (
        7,
        0,
        Compression.ZSTD,
    )
    assert append_numbered(log, 0, b"a" * 50, b"b" * 50).is_duplicate


def test_what_recompression_makes_larger_is_measured_again() -> None:
    bomb = batch_of(bytes(100_000), compression=Compression.GZIP)
    assert len(bomb) < 2_000
    log = new_log(LogConfig(compression=Compression.NONE, max_message_bytes=2_000))
    with pytest.raises(RecordTooLargeError):
        refused(log, bomb)
    log = new_log(LogConfig(compression=Compression.NONE, segment_bytes=2_000))
    with pytest.raises(RecordBatchTooLargeError):
        refused(log, bomb)


def test_transaction_markers_are_not_compressed() -> None:
    log = new_log(LogConfig(compression=Compression.GZIP))
    append_numbered(log, 0, b"a", transactional=True)
    end_transaction(log, 7, commit=True)
    assert [h.compression for h in headers_of(log)] == [Compression.GZIP, Compression.NONE]


# -- sizes ---------------------------------------------------------------------------------------


def test_max_message_bytes_bounds_each_batch() -> None:
    batch = batch_of(b"v" * 500)
    log = new_log(LogConfig(max_message_bytes=len(batch)))
    log.append_as_leader(batch + batch, leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(RecordTooLargeError, match=f"max.message.bytes={len(batch)}"):
        refused(log, batch_of(b"v" * 501))
    # What a coordinator must write is not for a topic's setting to forbid.
    larger = batch_of(b"v" * 501)
    log.append_as_leader(larger, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 3


def test_an_append_must_fit_a_segment() -> None:
    batch = batch_of(b"v" * 500)
    log = new_log(LogConfig(segment_bytes=2 * len(batch)))
    log.append_as_leader(batch * 2, leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(RecordBatchTooLargeError):
        refused(log, batch * 3)


# -- contents ------------------------------------------------------------------------------------


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    log = new_log(COMPACTED)
    keys = (b"a", None, b"", None)
    records = [Record(number, NOW_MS, key, b"v") for number, key in enumerate(keys)]
    with pytest.raises(InvalidRecordError, match="2 of the batch's 4") as caught:
        refused(log, encode_batch(records, compression=Compression.SNAPPY))
    assert caught.value.record_numbers == (1, 3)
    assert append(log, b"v", None, key=b"k").last_offset == 1


def test_a_compacted_topic_takes_transaction_markers() -> None:
    log = new_log(COMPACTED)
    append_numbered(log, 0, b"v", transactional=True)
    assert end_transaction(log, 7, commit=True).base_offset == 1


def test_clients_may_not_write_control_records() -> None:
    marker = encode_end_transaction_marker(
        ControlType.COMMIT,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=NOW_MS,
    )
    with pytest.raises(InvalidRecordError, match="control"):
        refused(new_log(), marker)


def test_clients_may_not_say_what_only_a_broker_can_know() -> None:
    record = Record(0, NOW_MS, b"k", b"v")
    log = new_log()
    # Kafka takes such a batch too, and corrects it.
    claimed = encode_batch([record], timestamp_type=TimestampType.LOG_APPEND_TIME)
    log.append_as_leader(bytearray(claimed), leader_epoch=0, now_ms=NOW_MS)
    region = log.read(0, 1000).region
    assert region is not None
    header = read_batch_header(region.read())
    validate_batch(region.read(), 0, header)
    assert header.timestamp_type is TimestampType.CREATE_TIME
    with pytest.raises(InvalidRecordError, match="delete horizon"):
        refused(new_log(), encode_batch([record], delete_horizon_ms=NOW_MS))


def test_timestamps_are_bounded_on_both_sides() -> None:
    log = new_log(
        LogConfig(message_timestamp_before_max_ms=1_000, message_timestamp_after_max_ms=100)
    )
    append(log, b"v", timestamp=NOW_MS - 1_000)
    append(log, b"v", timestamp=NOW_MS + 100)
    append(log, b"v", timestamp=-1)
    with pytest.raises(InvalidTimestampError, match=r"before\.max\.ms"):
        refused(log, batch_of(b"v", timestamp=NOW_MS - 1_001))
    with pytest.raises(InvalidTimestampError, match=r"after\.max\.ms"):
        refused(log, batch_of(b"v", timestamp=NOW_MS + 101))
    old_and_new = [Record(0, NOW_MS - 5_000, b"k", b"v"), Record(1, NOW_MS, b"k", b"v")]
    with pytest.raises(InvalidTimestampError) as refusal:
        refused(log, encode_batch(old_and_new))
    assert refusal.value.record_numbers == (0,)
    soon_and_late = [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS + 500, b"k", b"v")]
    with pytest.raises(InvalidTimestampError) as refusal:
        refused(log, encode_batch(soon_and_late))
    assert refusal.value.record_numbers == (1,)


def test_append_time_is_not_bounded_by_what_the_producer_says() -> None:
    log = new_log(
        LogConfig(
            message_timestamp_type=TimestampType.LOG_APPEND_TIME,
            message_timestamp_before_max_ms=0,
            message_timestamp_after_max_ms=0,
        )
    )
    append(log, b"v", timestamp=5)
    append(log, b"v", timestamp=NOW_MS * 2)
    assert log.log_end_offset == 2


# -- damage --------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(0, 7))
def test_a_flipped_bit_is_refused_and_nothing_is_written(place: int, bit: int) -> None:
    batch = batch_of(b"some value", b"another value")
    # The leader epoch in a producer's batch means nothing, and no checksum covers it.
    positions = [number for number in range(len(batch)) if not 12 <= number < 16]
    data = bytearray(batch)
    data[positions[place % len(positions)]] ^= 1 << bit
    log = new_log()
    append(log, b"first")
    with pytest.raises((CorruptRecordError, InvalidRecordError)):
        refused(log, bytes(data))
    assert [r.value for r in read_records(log, 0)] == [b"first"]


def test_of_two_batches_a_bad_second_one_takes_the_first_with_it() -> None:
    log = new_log()
    bad = bytearray(batch_of(b"bad"))
    bad[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        refused(log, batch_of(b"good") + bytes(bad))


@pytest.mark.parametrize("cut", [1, 20, 60, 70])
def test_a_batch_that_is_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(CorruptRecordError):
        refused(new_log(), batch_of(b"value")[:-cut])


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, struct.pack(">q", 5)),  # It does not start at 0.
        (23, struct.pack(">i", 1)),  # It spans more offsets than it has records.
        (57, struct.pack(">i", 0)),  # It has no records.
        (57, struct.pack(">i", -1)),
        (43, struct.pack(">q", 7)),  # It has a producer id and no sequence.
    ],
)
def test_a_header_that_contradicts_itself_is_refused(position: int, value: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        refused(new_log(), patched(batch_of(b"value"), position, value))


# -- the epoch's file ----------------------------------------------------------------------------


def test_an_epoch_that_could_not_be_written_is_written_before_the_next_records() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    disk.faults = [Fault({"write"}, error=errno.ENOSPC, hit_count_max=1)]
    with pytest.raises(LogStorageError):
        append(log, b"v", leader_epoch=3)
    append(log, b"v", leader_epoch=3)
    assert b"3 0" in disk.contents()[f"{DIRECTORY}/leader-epoch-checkpoint"]


def test_control_batches_of_a_coordinator_can_be_read_back() -> None:
    log = new_log()
    append_numbered(log, 0, b"v", transactional=True)
    end_transaction(log, 7, commit=False)
    assert [h.is_control for h in headers_of(log)] == [False, True]
    assert len(list(decode_records(all_bytes(log)))) == 2


def test_many_small_records_are_left_to_a_thread() -> None:
    records = [Record(number, 0, None, None) for number in range(WALKED_INLINE_RECORDS_MAX + 1)]
    many, few = encode_batch(records), encode_batch(records[:-1])
    compressed = encode_batch(records, compression=Compression.GZIP)
    assert takes_long(many, LogConfig())
    assert not takes_long(few, LogConfig())
    assert not takes_long(compressed + bytes(len(many)), LogConfig())
    assert not takes_long(many, LogConfig(records_validation=RecordsValidation.HEADER))
