"""Which of a producer's batches become delayed ones, and what they ask for."""

from __future__ import annotations

import pytest

from headwater.base.durations import LONG_MAX
from headwater.base.errors import ErrorCode, KafkaError
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    new_disk,
    open_log,
    read_records,
)
from headwater.storage.log_config import NO_DELAYS, DelayMode, LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.copies import (
    DELIVERY_PRODUCER_ID,
    Delivery,
    OrderKey,
    encode_deliveries,
)
from headwater.wire.delayed.delayed_batch import (
    DUE_MS_MAX,
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
    delayed_message,
)
from headwater.wire.records import (
    Compression,
    InvalidRecordError,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    read_batch_header,
)

MINUTE_MS = 60_000
Headers = dict[str, str]


def config(mode: DelayMode = DelayMode.HEADER, **rules: object) -> LogConfig:
    return LogConfig(delay=NO_DELAYS._replace(mode=mode, **rules))  # type: ignore[arg-type]


def batch(*asked: Headers | None, timestamp: int = NOW_MS, **fields: object) -> bytes:
    """A record for each set of headers."""
    return encode_batch(
        [
            Record(
                number,
                timestamp,
                b"key",
                b"value %d" % number,
                tuple((name, text.encode()) for name, text in (each or {}).items()),
            )
            for number, each in enumerate(asked)
        ],
        **fields,  # type: ignore[arg-type]
    )


def log_with(log_config: LogConfig) -> PartitionLog:
    return open_log(new_disk(), DIRECTORY, log_config)


def appended(log: PartitionLog, data: bytes) -> list[DelayedRecord] | None:
    """What a batch became in the log; None if it is an ordinary one."""
    result = log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    region = log.read(result.base_offset, 1 << 20).region
    assert region is not None
    written = region.read()
    return decode_delayed_batch(written) if read_batch_header(written).is_delayed else None


def dues(
    log_config: LogConfig,
    *asked: Headers | None,
    timestamp: int = NOW_MS,
    compression: Compression = Compression.NONE,
) -> list[int] | None:
    data = batch(*asked, timestamp=timestamp, compression=compression)
    delayed = appended(log_with(log_config), data)
    return None if delayed is None else [each.due_ms - NOW_MS for each in delayed]


def test_a_header_says_how_long() -> None:
    assert dues(config(), {"headwater-delay": "30s"}) == [30_000]
    assert dues(config(), {"headwater-delay": "250"}) == [250]
    assert dues(config(), {"headwater-deliver-at": str(NOW_MS + 77)}) == [77]
    assert dues(config(), {"headwater-deliver-at": "5"}) == [0]  # The past is now.


def test_what_asks_for_nothing_stays_what_it_is() -> None:
    assert dues(config(), None, {"other": "30s"}) is None
    assert dues(config(), {"headwater-delay-id": "x"}) is None
    assert dues(LogConfig(), {"headwater-delay": "30s"}) is None
    assert dues(config(), None, compression=Compression.ZSTD) is None


def test_a_batch_is_delayed_as_a_whole() -> None:
    assert dues(config(), None, {"headwater-delay": "1m"}, None) == [0, MINUTE_MS, 0]


@pytest.mark.parametrize("codec", list(Compression))
def test_records_keep_their_content_in_every_codec(codec: Compression) -> None:
    log = log_with(config())
    data = batch({"headwater-delay": "1m", "a": "b" * 2000}, None, compression=codec)
    delayed = appended(log, data)
    assert delayed is not None
    assert [each.record() for each in delayed] == decode_batch(data)


def test_the_notes_example_of_levels() -> None:
    """17 s are forced up to the level of 30 s: the error is 13 s."""
    assert dues(config(DelayMode.LEVELS), {"headwater-delay": "17s"}) == [30_000]
    assert 30_000 - 17_000 == 13_000
    assert dues(config(DelayMode.LEVELS), {"headwater-delay": "5s"}) == [5_000]
    assert dues(config(DelayMode.LEVELS), {"headwater-delay": "2h"}) == [7_200_000]
    with pytest.raises(InvalidRecordError, match=r"longest of delay\.levels is 7200000"):
        dues(config(DelayMode.LEVELS), {"headwater-delay": "121m"})


def test_a_time_ahead_counts_where_the_topic_says_so() -> None:
    mode = LogConfig(
        delay=NO_DELAYS._replace(mode=DelayMode.TIMESTAMP), message_timestamp_after_max_ms=LONG_MAX
    )
    assert dues(mode, None, timestamp=NOW_MS + 90) == [90]
    assert dues(mode, {"headwater-delay": "1m"}, timestamp=NOW_MS) is None
    with pytest.raises(InvalidRecordError, match=r"delay\.max\.ms"):
        dues(mode, None, timestamp=NOW_MS + 41 * 24 * 60 * MINUTE_MS)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"headwater-delay": "soon"}, "is no length of time"),
        ({"headwater-delay": "-5"}, "is no length of time"),
        ({"headwater-delay": ""}, "is no length of time"),
        ({"headwater-delay": "41d"}, r"delay\.max\.ms is 3456000000"),
        ({"headwater-delay": str(LONG_MAX)}, r"delay\.max\.ms"),
        ({"headwater-delay": "99999999999999999999h"}, "is no length of time"),
        ({"headwater-deliver-at": "tomorrow"}, "must be a number"),
        ({"headwater-deliver-at": str(LONG_MAX)}, r"delay\.max\.ms"),
        ({"headwater-delay": "1s", "headwater-deliver-at": "1"}, "has both"),
        ({"headwater-delay": "1s", "headwater-expire-at": "x"}, "must be a number"),
        ({"headwater-delay": "1s", "headwater-delay-id": "x" * 257}, "has 257 bytes"),
        ({"headwater-delay": "cancel"}, "names its message by"),
        ({"headwater-delay": "cancel", "headwater-delayed-offset": "x"}, "must be a number"),
        ({"headwater-delay": "cancel", "headwater-delayed-offset": "@5"}, "is not the id of"),
        ({"headwater-delay": "cancel", "headwater-delayed-offset": f"{'x' * 999}@5"}, "is not"),
        ({"headwater-delay": "9" * 5000}, r"'9{100}\.\.\.' is no length of time"),
        ({"headwater-deliver-at": "x" * 5000}, r"'x{100}\.\.\.', and must be"),
    ],
)
def test_what_cannot_be_had(asked: Headers, sentence: str) -> None:
    log = log_with(config())
    with pytest.raises(InvalidRecordError, match=sentence) as raised:
        appended(log, batch(None, asked))
    assert raised.value.record_numbers == (1,)
    assert log.log_end_offset == 0


def test_a_cancellation_is_a_record_too() -> None:
    by_id = {"headwater-delay": "cancel", "headwater-delay-id": "order-7"}
    by_offset = {"headwater-delay": "cancel", "headwater-delayed-offset": "12"}
    by_whole_id = {"headwater-delay": "cancel", "headwater-delayed-offset": f"{PARTITION}@13"}
    delayed = appended(log_with(config()), batch(by_id, by_offset, by_whole_id))
    assert delayed is not None
    assert [(each.kind, each.original, each.sender_id, each.value) for each in delayed] == [
        (DelayedKind.CANCEL, -1, b"order-7", b""),
        (DelayedKind.CANCEL, 12, b"", b""),
        (DelayedKind.CANCEL, 13, b"", b""),
    ]


@pytest.mark.parametrize("elsewhere", ["topic-1@12", "orders-0@12"])
def test_a_cancellation_of_a_message_elsewhere_cancels_nothing(elsewhere: str) -> None:
    """With another key it comes to another partition, where the offset is somebody else's."""
    asked = {"headwater-delay": "cancel", "headwater-delayed-offset": elsewhere}
    delayed = appended(log_with(config()), batch(asked))
    assert delayed is not None
    assert [(each.kind, each.original, each.sender_id) for each in delayed] == [
        (DelayedKind.CANCEL, -1, b"")
    ]


@pytest.mark.parametrize(
    ("log_config", "asked", "timestamp"),
    [
        (config(max_ms=LONG_MAX), {"headwater-delay": str(LONG_MAX)}, NOW_MS),
        (config(max_ms=LONG_MAX), {"headwater-deliver-at": str(LONG_MAX)}, NOW_MS),
        (config(max_ms=LONG_MAX), {"headwater-deliver-at": str(DUE_MS_MAX + 1)}, NOW_MS),
        (
            config(DelayMode.LEVELS, max_ms=LONG_MAX, levels_ms=(LONG_MAX,)),
            {"headwater-delay": "1s"},
            NOW_MS,
        ),
        (
            LogConfig(
                delay=NO_DELAYS._replace(mode=DelayMode.TIMESTAMP, max_ms=LONG_MAX),
                message_timestamp_after_max_ms=LONG_MAX,
            ),
            None,
            LONG_MAX,
        ),
    ],
    ids=["delay", "time", "first that is too late", "level", "record's time"],
)
def test_no_time_is_beyond_64_bits(
    log_config: LogConfig, asked: Headers | None, timestamp: int
) -> None:
    """However long `delay.max.ms` is; and what is later than any time is no dead letter."""
    with pytest.raises(InvalidRecordError, match="there is no time so late"):
        dues(log_config, asked, timestamp=timestamp)


def test_the_latest_time_that_there_is() -> None:
    asked = {"headwater-deliver-at": str(DUE_MS_MAX)}
    assert dues(config(max_ms=LONG_MAX), asked) == [DUE_MS_MAX - NOW_MS]


def test_a_producer_that_sends_again_is_told_the_same_offset() -> None:
    log = log_with(config())
    data = batch({"headwater-delay": "1m"}, producer_id=4, producer_epoch=0, base_sequence=0)
    first = log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    again = log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS + 5)
    assert (again.base_offset, again.is_duplicate) == (first.base_offset, True)
    following = batch({"headwater-delay": "1m"}, producer_id=4, producer_epoch=0, base_sequence=2)
    with pytest.raises(KafkaError) as raised:
        log.append_as_leader(following, leader_epoch=0, now_ms=NOW_MS)
    assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_delayed_batch_of_a_transaction_holds_the_stable_offset_back() -> None:
    log = log_with(config())
    data = batch(
        {"headwater-delay": "1m"},
        producer_id=4,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    log.append_as_leader(batch(None), leader_epoch=0, now_ms=NOW_MS)
    log.raise_high_watermark(2)
    assert log.last_stable_offset == 0


def test_nobody_may_speak_as_who_delivers() -> None:
    data = batch(None, producer_id=DELIVERY_PRODUCER_ID, producer_epoch=0, base_sequence=0)
    for each in (config(), LogConfig()):
        with pytest.raises(InvalidRecordError, match="No client has the producer id"):
            appended(log_with(each), data)


def test_what_comes_late_is_due_behind_what_was_delivered() -> None:
    log = log_with(config())
    deliver(log, NOW_MS + 500)
    delayed = appended(log, batch({"headwater-delay": "100ms"}, {"headwater-delay": "1s"}))
    assert delayed is not None
    assert [each.due_ms - NOW_MS for each in delayed] == [500, 1_000]


def test_how_far_deliveries_are_outlives_snapshots_and_time() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, config())
    deliver(log, NOW_MS + 500)
    log.producer_states.remove_expired(NOW_MS + 10**12)
    log.close()
    log = open_log(disk, DIRECTORY, config())
    assert log.producer_states.delivered_until_ms == NOW_MS + 500


def deliver(log: PartitionLog, due_ms: int) -> None:
    message = delayed_message(Record(0, 1, None, b"v"), 1)
    copies = encode_deliveries([Delivery(OrderKey(due_ms, 0, 0), message)], append_ms=NOW_MS)
    log.append_as_leader(copies, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


@pytest.mark.parametrize(
    "log_config",
    [
        LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME),
        LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000),
        LogConfig(compression=Compression.ZSTD),
    ],
    ids=["append times", "bounds of times", "another codec"],
)
def test_a_copy_keeps_the_time_at_which_it_was_due(log_config: LogConfig) -> None:
    """It is the order of deliveries, whatever the topic says about times."""
    log = log_with(log_config)
    for due_ms in (NOW_MS - 10**9, NOW_MS - 5000, NOW_MS + 10**9):
        deliver(log, due_ms)
        assert log.producer_states.delivered_until_ms == due_ms
    times = [each.timestamp for each in read_records(log, 0)]
    # The first is so late that retention could take it for old.
    assert times == [NOW_MS, NOW_MS - 5000, NOW_MS + 10**9]


def test_a_copy_that_fills_more_than_a_segment_is_written_all_the_same() -> None:
    log = log_with(LogConfig(segment_bytes=100, max_message_bytes=100))
    deliver(log, NOW_MS)
    deliver(log, NOW_MS + 1)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert log.segments[0].size_bytes > 100
