"""What a leader takes, corrects and refuses of what a producer's records say."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    end_transaction,
    new_disk,
    open_log,
    read_records,
)
from headwater.storage.append.record_checks import plausible_max_timestamp
from headwater.storage.log_config import LogConfig, RecordsValidation
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import apply_retention
from headwater.wire.records import (
    BatchHeader,
    Compression,
    InvalidRecordError,
    Record,
    TimestampType,
    compress,
    encode_batch,
    read_batch_header,
    validate_batch,
)
from tests.support.values.raw_batches import POISON, THREE, raw_batch, raw_record, sealed
from tests.support.values.record_strategies import compressions, headers, nullable_bytes

HEADER = LogConfig(records_validation=RecordsValidation.HEADER)
STRUCTURE = LogConfig()
FULL = LogConfig(records_validation=RecordsValidation.FULL)
CODECS = [each for each in Compression if each is not Compression.NONE]


def new_log(config: LogConfig = STRUCTURE) -> PartitionLog:
    return open_log(new_disk(), DIRECTORY, config)


def take(log: PartitionLog, batch: bytes) -> int:
    return log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS).base_offset


def refusal(log: PartitionLog, batch: bytes) -> KafkaError:
    """Why the log does not take the batch, of which nothing may be left in it."""
    before = log.log_end_offset, log.size_bytes
    with pytest.raises(KafkaError) as refused:
        take(log, batch)
    assert (log.log_end_offset, log.size_bytes) == before
    return refused.value


def stored_header(log: PartitionLog, offset: int) -> BatchHeader:
    region = log.read(offset, 1, min_one_batch=True).region
    assert region is not None
    batch = region.read()
    header = read_batch_header(batch)
    validate_batch(batch, 0, header)  # Its checksum above all.
    return header


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("compression", Compression)
def test_records_that_are_not_in_order_are_refused(name: str, compression: Compression) -> None:
    section, count, numbers = POISON[name]
    batch = raw_batch(section, count, compression=compression)
    validating = STRUCTURE if compression is Compression.NONE else FULL
    recompressing = dataclasses.replace(validating, compression=Compression.ZSTD)
    for config in (validating, recompressing):
        for timestamp_type in TimestampType:
            log = new_log(dataclasses.replace(config, message_timestamp_type=timestamp_type))
            error = refusal(log, batch)
            assert error.code is ErrorCode.INVALID_RECORD
            assert getattr(error, "record_numbers", ()) == numbers


@pytest.mark.parametrize("name", POISON)
def test_they_are_refused_wherever_records_are_looked_into_anyway(name: str) -> None:
    section, count, _ = POISON[name]
    batch = raw_batch(section, count, compression=Compression.LZ4)
    refusal(new_log(LogConfig(compression=Compression.ZSTD)), batch)
    refusal(new_log(LogConfig(cleanup_policy=frozenset({"compact"}))), batch)
    refusal(new_log(LogConfig(message_timestamp_before_max_ms=10_000)), batch)


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_producers_number_makes_no_difference(name: str, transactional: bool) -> None:
    section, count, _ = POISON[name]
    attributes = 0x10 if transactional else 0
    batch = raw_batch(section, count, producer_id=7, attributes=attributes)
    log = new_log()
    assert refusal(log, batch).code is ErrorCode.INVALID_RECORD
    # The refused one did not use up its sequence numbers.
    assert take(log, raw_batch(THREE, 3, producer_id=7, attributes=attributes)) == 0


@pytest.mark.parametrize("compression", CODECS)
def test_streams_that_do_not_decompress_are_refused_in_full(compression: Compression) -> None:
    whole = compress(compression, THREE * 20)
    for stored in (b"no stream of any codec", whole[:-9], whole[: len(whole) // 2]):
        batch = sealed(stored, 60, compression)
        assert refusal(new_log(FULL), batch).code is ErrorCode.CORRUPT_MESSAGE
        assert take(new_log(STRUCTURE), batch) == 0


def test_the_header_alone_is_looked_at_if_the_topic_says_so() -> None:
    for section, count, _ in POISON.values():
        assert take(new_log(HEADER), raw_batch(section, count)) == 0


def test_a_record_far_ahead_is_named_whatever_the_header_says() -> None:
    late = raw_record(0) + raw_record(1, timestamp_delta=7_200_000) + raw_record(2)
    error = refusal(new_log(), raw_batch(late, 3))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert getattr(error, "record_numbers", ()) == (1,)


# -- what is taken -------------------------------------------------------------------------------


@st.composite
def producer_records(draw: st.DrawFn) -> list[Record]:
    times = draw(st.lists(st.integers(-300, 300), min_size=1, max_size=30))
    alike = draw(st.booleans())
    key, value, some_headers = draw(nullable_bytes), draw(nullable_bytes), tuple(draw(headers))
    return [
        Record(number, NOW_MS + ms, key, value, some_headers)
        if alike
        else Record(number, NOW_MS + ms, draw(nullable_bytes), draw(nullable_bytes))
        for number, ms in enumerate(times)
    ]


@given(records=producer_records(), compression=compressions)
def test_whatever_an_encoder_makes_is_taken_as_it_is(
    records: list[Record], compression: Compression
) -> None:
    batch = encode_batch(records, compression=compression)
    for config in (HEADER, STRUCTURE, FULL):
        log = new_log(dataclasses.replace(config, max_message_bytes=10 << 20))
        take(log, batch)
        assert read_records(log, 0) == records
        header, sent = stored_header(log, 0), read_batch_header(batch)
        assert header == sent._replace(leader_epoch=0)


@given(
    records=producer_records(),
    compression=compressions,
    change=st.sampled_from(["count", "delta", "length", "cut", "surplus"]),
    data=st.data(),
)
def test_any_one_change_of_the_structure_is_refused(
    records: list[Record], compression: Compression, change: str, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(records) - 1))
    parts = [raw_record(each, record.value or b"") for each, record in enumerate(records)]
    count = len(parts)
    match change:
        case "count":
            count += data.draw(st.sampled_from([-1, 1, 5] if count > 1 else [1, 5]))
        case "delta":
            other = data.draw(st.integers(-3, 40).filter(lambda delta: delta != number))
            parts[number] = raw_record(other, records[number].value or b"")
        case "length":
            value = records[number].value or b""
            wrong = data.draw(st.integers(-20, 20).filter(lambda error: error != 0))
            parts[number] = raw_record(number, value, length_error=wrong)
    section = b"".join(parts)
    if change == "cut":
        section = section[: -data.draw(st.integers(1, len(parts[-1]) - 1))]
    elif change == "surplus":
        section += data.draw(st.binary(min_size=1, max_size=10))
    batch = raw_batch(section, count, compression=compression)
    structure = dataclasses.replace(
        STRUCTURE if compression is Compression.NONE else FULL, max_message_bytes=10 << 20
    )
    assert refusal(new_log(structure), batch).code is ErrorCode.INVALID_RECORD


def test_numbers_longer_than_they_need_be_are_taken_as_kafka_takes_them() -> None:
    plain = raw_record(0)
    assert plain[0] < 0x80  # Its length takes one byte, and two will do as well.
    overlong = bytes((plain[0] | 0x80, 0)) + plain[1:]
    assert take(new_log(), raw_batch(overlong, 1)) == 0


def test_transaction_markers_are_not_looked_into() -> None:
    log = new_log(FULL)
    take(log, raw_batch(THREE, 3, producer_id=7, attributes=0x10))
    end_transaction(log, 7, commit=True)
    assert log.log_end_offset == 4


# -- times ---------------------------------------------------------------------------------------

UNTIMED = raw_record(0) + raw_record(1)
HOUR_MS = 3_600_000


@pytest.mark.parametrize("config", [HEADER, STRUCTURE, FULL], ids=["header", "structure", "full"])
@pytest.mark.parametrize("compression", Compression)
def test_records_without_timestamps_are_kept_although_librdkafka_says_1970(
    config: LogConfig, compression: Compression
) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, dataclasses.replace(config, retention_ms=HOUR_MS))
    now_ms = disk.clock.wall_ms()
    batch = raw_batch(UNTIMED, 2, compression=compression, base_timestamp=-1, max_timestamp=0)
    log.append_as_leader(batch, leader_epoch=0, now_ms=now_ms)
    append(log, b"of now", timestamp=now_ms, now_ms=now_ms)
    log.append_as_leader(batch, leader_epoch=0, now_ms=now_ms)
    assert len(log.segments) == 1
    header = stored_header(log, 0)
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)
    log.raise_high_watermark(log.log_end_offset)
    assert apply_retention(log, now_ms + HOUR_MS) == []
    assert [record.timestamp for record in read_records(log, 0)] == [-1, -1, now_ms, -1, -1]


def test_a_log_of_before_that_says_1970_loses_nothing_and_does_not_roll() -> None:
    disk = new_disk()
    config = LogConfig(retention_ms=HOUR_MS)
    log = open_log(disk, DIRECTORY, config)
    now_ms = disk.clock.wall_ms()
    old = raw_batch(UNTIMED, 2, base_timestamp=-1, max_timestamp=0)
    log.append_as_follower(old, now_ms=now_ms)  # Which takes a leader's word.
    log.close()
    log = open_log(disk, DIRECTORY, config, now_ms=now_ms)  # Recovered from its batches.
    append(log, b"of now", timestamp=now_ms, now_ms=now_ms)
    assert len(log.segments) == 1
    log = open_log(disk, DIRECTORY, config, now_ms=now_ms)
    log.raise_high_watermark(log.log_end_offset)
    assert apply_retention(log, now_ms + HOUR_MS) == []


@pytest.mark.parametrize("lie_ms", [-1, 0, 1, NOW_MS - 1, NOW_MS + 50, NOW_MS + 10**12, 2**63 - 1])
@pytest.mark.parametrize("compression", Compression)
def test_a_header_says_of_its_records_times_what_they_say(
    lie_ms: int, compression: Compression
) -> None:
    section = raw_record(0) + raw_record(1, timestamp_delta=20) + raw_record(2, timestamp_delta=-9)
    batch = raw_batch(section, 3, compression=compression, max_timestamp=lie_ms)
    log = new_log(FULL if compression is not Compression.NONE else STRUCTURE)
    take(log, batch)
    assert stored_header(log, 0).max_timestamp == NOW_MS + 20
    assert log.segments.active.latest == (NOW_MS + 20, 2)
    assert [record.timestamp - NOW_MS for record in read_records(log, 0)] == [0, 20, -9]


def test_a_producer_that_claims_append_time_is_taken_by_its_records() -> None:
    section = raw_record(0) + raw_record(1, timestamp_delta=20)
    log = new_log()
    take(log, raw_batch(section, 2, attributes=0x08, max_timestamp=5))
    header = stored_header(log, 0)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.CREATE_TIME, NOW_MS + 20)


def test_the_buffer_of_somebody_else_is_not_corrected() -> None:
    batch = raw_batch(UNTIMED, 2, base_timestamp=-1, max_timestamp=0)
    before = bytes(bytearray(batch))
    log = new_log()
    take(log, batch)
    assert batch == before
    assert stored_header(log, 0).max_timestamp == -1


@pytest.mark.parametrize(
    ("base_ms", "max_ms", "plausible_ms"),
    [
        (-1, 0, -1),
        (-1, -1, -1),
        (-1, -7, -1),
        (-1, NOW_MS, NOW_MS),
        (NOW_MS, NOW_MS + 5, NOW_MS + 5),
        (NOW_MS, 0, NOW_MS),
        (NOW_MS, -1, NOW_MS),
        (0, 0, 0),
    ],
)
def test_what_to_make_of_a_claim(base_ms: int, max_ms: int, plausible_ms: int) -> None:
    assert plausible_max_timestamp(base_ms, max_ms) == plausible_ms
    for compression in CODECS:
        log = new_log()
        batch = raw_batch(
            UNTIMED, 2, compression=compression, base_timestamp=base_ms, max_timestamp=max_ms
        )
        take(log, batch)
        assert stored_header(log, 0).max_timestamp == plausible_ms


def test_the_error_says_which_record_is_at_fault() -> None:
    section, count, _ = POISON["a delta left out"]
    with pytest.raises(InvalidRecordError, match="record 1 of the batch has the offset delta 2"):
        take(new_log(), raw_batch(section, count))


def test_a_follower_takes_its_leaders_word() -> None:
    section, count, _ = POISON["the same delta again"]
    log = new_log(FULL)
    log.append_as_follower(raw_batch(section, count), now_ms=NOW_MS)
    assert log.log_end_offset == 3
