"""What `delay.mode` lets count, what is refused, and what becomes of messages that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.delayed.delayed_batch import DelayedKind
from headwater.wire.messages.produce import PartitionProduceResponse
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import ClientError, Consumed, Headers, Message
from tests.support.other_clients.delays import (
    HOUR,
    consume_in_time,
    delayed,
    delayed_offset,
    in_log,
    is_copy,
    now_ms,
    sent_headers,
)
from tests.support.other_clients.raw import RawConnection

MakeTopic = Callable[..., str]

HOUR_MS = 3_600_000


@pytest.fixture
def connection(broker: BrokerUnderTest) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as opened:
        yield opened


def batch(*headers: Headers, timestamp_ms: int | None = None) -> bytes:
    """A record for each set of headers."""
    at = now_ms() if timestamp_ms is None else timestamp_ms
    return encode_batch(
        [
            Record(number, at, b"key", b"value %d" % number, each)
            for number, each in enumerate(headers)
        ]
    )


def headers_of(**texts: object) -> Headers:
    return tuple(
        (f"headwater-{name.replace('_', '-')}", str(text).encode()) for name, text in texts.items()
    )


# -- modes -----------------------------------------------------------------------------------------


def test_levels(confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    """Seventeen seconds become thirty, the next level: 13 s more than was asked for."""
    topic = make_topic(delay_mode="levels")
    began_ms = now_ms()
    confluent.produce(topic, [delayed(b"17", "17s"), delayed(b"5", "5s"), delayed(b"2h", "61m")])
    ended_ms = now_ms()
    waiting = in_log(broker.log_dir, topic)
    for message, level_ms in zip(waiting, (30_000, 5_000, 2 * HOUR_MS), strict=True):
        assert began_ms + level_ms <= message.due_ms <= ended_ms + level_ms
    assert confluent.consume(topic, "earliest") == []
    with pytest.raises(ClientError) as refusal:
        confluent.produce(topic, [delayed(b"too long", "3h")])
    assert refusal.value.name == "INVALID_RECORD"


def test_levels_of_ones_own(
    confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    topic = make_topic(delay_mode="levels", delay_levels="200ms,1h")
    confluent.produce(topic, [delayed(b"soon", "1ms"), delayed(b"late", "201ms")])
    soon, late = in_log(broker.log_dir, topic)
    assert late.due_ms - soon.due_ms == HOUR_MS - 200
    [found] = consume_in_time(confluent, topic, 1)
    assert (found.value, found.timestamp_ms) == (b"soon", soon.due_ms)


def test_timestamps(
    confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    """A record's time, where it lies ahead, is when it is due; a header says nothing there."""
    topic = make_topic(delay_mode="timestamp")
    soon_ms, late_ms, past_ms = now_ms() + 1_000, now_ms() + 30 * 24 * HOUR_MS, now_ms() - HOUR_MS
    confluent.produce(topic, [Message(b"late", timestamp_ms=late_ms)])
    confluent.produce(topic, [Message(b"soon", timestamp_ms=soon_ms)])
    confluent.produce(topic, [Message(b"past", timestamp_ms=past_ms)])
    confluent.produce(topic, [delayed(b"header", HOUR)._replace(timestamp_ms=past_ms)])
    assert [each.due_ms for each in in_log(broker.log_dir, topic)] == [late_ms, soon_ms]
    found = consume_in_time(confluent, topic, 3)
    assert [(each.value, each.timestamp_ms) for each in found] == [
        (b"past", past_ms),
        (b"header", past_ms),
        (b"soon", soon_ms),
    ]
    with pytest.raises(ClientError) as refusal:
        confluent.produce(topic, [Message(b"x", timestamp_ms=now_ms() + 41 * 24 * HOUR_MS)])
    assert refusal.value.name in ("INVALID_RECORD", "INVALID_TIMESTAMP")


def test_a_fixed_delay(
    confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    """Consumers see all of it later; nothing is wrapped, and offsets have no gaps."""
    delay_ms = 1_000
    topic = make_topic(
        delay_mode="fixed", delay_ms=delay_ms, message_timestamp_type="LogAppendTime"
    )
    began_ms = now_ms()
    confluent.produce(topic, [Message(b"%d" % number) for number in range(3)])
    confluent.produce(topic, [delayed(b"a header says nothing", HOUR)])
    found: list[Consumed] = []
    while len(found) < 4:
        more = confluent.consume(topic, len(found))
        arrived_ms = now_ms()
        found += more
        for each in more:
            assert began_ms <= each.timestamp_ms <= arrived_ms - delay_ms
    assert [each.offset for each in found] == [0, 1, 2, 3]
    assert not any(map(is_copy, found)) and all(each.is_append_time for each in found)
    assert in_log(broker.log_dir, topic) == []
    assert confluent.end_offsets(topic) == (0, 4)


def test_off(confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    """By default a header is a header, whatever it says."""
    topic = make_topic()
    sent = [delayed(b"one", HOUR), delayed(b"two", "nonsense")]
    confluent.produce(topic, sent)
    found = confluent.consume(topic, "earliest")
    assert [(each.value, each.headers) for each in found] == [
        (each.value, each.headers) for each in sent
    ]


def test_a_mode_that_is_switched_off(
    confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    """What waits is delivered all the same; new records are ordinary ones."""
    topic = make_topic(delay_mode="header")
    confluent.produce(topic, [delayed(b"waits", "1500ms")])
    confluent.alter_topic(topic, {"delay.mode": "off"})
    confluent.produce(topic, [delayed(b"ordinary", HOUR)])
    found = consume_in_time(confluent, topic, 2)
    assert [(each.value, is_copy(each)) for each in found] == [
        (b"ordinary", False),
        (b"waits", True),
    ]


# -- what is refused -------------------------------------------------------------------------------

CONFLICTS = [
    ({"delay.mode": "header"}, {"cleanup.policy": "compact"}),
    ({"delay.mode": "levels"}, {"cleanup.policy": "compact,delete"}),
    ({"delay.mode": "timestamp"}, {"cleanup.policy": "compact"}),
    ({"delay.mode": "timestamp"}, {"message.timestamp.type": "LogAppendTime"}),
]


@pytest.mark.parametrize(("mode", "other"), CONFLICTS)
def test_settings_that_do_not_go_together(
    mode: dict[str, str],
    other: dict[str, str],
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    with pytest.raises(ClientError) as refusal:
        confluent.create_topic(new_name(), settings={**mode, **other})
    assert refusal.value.name == "INVALID_CONFIG" and "delay.mode" in refusal.value.text
    for first, second in ((mode, other), (other, mode)):
        topic = make_topic(**{name.replace(".", "_"): text for name, text in first.items()})
        with pytest.raises(ClientError) as refusal:
            confluent.alter_topic(topic, {**first, **second})
        assert refusal.value.name == "INVALID_CONFIG"


def test_a_fixed_delay_needs_append_times(
    confluent: ConfluentClient, make_topic: MakeTopic, new_name: Callable[[], str]
) -> None:
    with pytest.raises(ClientError) as refusal:
        confluent.create_topic(new_name(), settings={"delay.mode": "fixed"})
    assert refusal.value.name == "INVALID_CONFIG"
    topic = make_topic()
    with pytest.raises(ClientError) as refusal:
        confluent.alter_topic(topic, {"delay.mode": "fixed"})
    assert refusal.value.name == "INVALID_CONFIG"
    topic = make_topic(delay_mode="fixed", message_timestamp_type="LogAppendTime")
    with pytest.raises(ClientError) as refusal:
        confluent.alter_topic(
            topic, {"delay.mode": "fixed", "message.timestamp.type": "CreateTime"}
        )
    assert refusal.value.name == "INVALID_CONFIG"
    # Compacted topics may have one.
    make_topic(delay_mode="fixed", message_timestamp_type="LogAppendTime", cleanup_policy="compact")


@pytest.mark.parametrize(
    "wrong",
    [
        headers_of(delay="soon"),
        headers_of(delay="-5s"),
        headers_of(delay=""),
        headers_of(delay="5 parsecs"),
        headers_of(delay="99999999999999999999"),
        headers_of(delay="41d"),
        headers_of(delay=41 * 24 * HOUR_MS),
        headers_of(deliver_at="tomorrow"),
        headers_of(deliver_at="-1"),
        headers_of(deliver_at=2**63),
        headers_of(deliver_at=2**63 - 1),
        headers_of(delay="5s", deliver_at="0"),
        headers_of(delay="5s", expire_at="never"),
        headers_of(delay="5s", delay_id="x" * 257),
        headers_of(delay="cancel"),
        headers_of(delay="cancel", delay_id="x", delayed_offset="5"),
        headers_of(delay="cancel", delayed_offset="five"),
        (("headwater-delay", b"\xff\xfe"),),
        (("headwater-delay", None),),
    ],
    ids=str,
)
def test_bad_delays(wrong: Headers, connection: RawConnection, make_topic: MakeTopic) -> None:
    """The batch is refused as a whole, with the number of the record and a sentence."""
    topic = make_topic(delay_mode="header")
    answer: PartitionProduceResponse = connection.produce(topic, batch((), (), wrong, ()))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [2]
    assert answer.error_message or answer.record_errors[0].batch_index_error_message
    assert connection.produce(topic, batch(())).base_offset == 0


def test_times_in_the_past_are_due_at_once(
    confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(delay_mode="header")
    began_ms = now_ms()
    sent = [
        Message(b"zero", headers=headers_of(deliver_at=0)),
        Message(b"before", headers=headers_of(deliver_at=began_ms - HOUR_MS)),
        Message(b"now", headers=headers_of(delay=0)),
    ]
    confluent.produce(topic, sent)
    found = consume_in_time(confluent, topic, 3)
    assert [each.value for each in found] == [b"zero", b"before", b"now"]
    assert all(each.timestamp_ms >= began_ms for each in found)


def test_the_longest_delay(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(delay_mode="header", delay_max_ms=60_000)
    assert connection.produce(topic, batch(headers_of(delay="1m"))).error_code == 0
    too_long = connection.produce(topic, batch(headers_of(delay=60_001)))
    assert too_long.error_code == ErrorCode.INVALID_RECORD
    at = connection.produce(topic, batch(headers_of(deliver_at=now_ms() + 120_000)))
    assert at.error_code == ErrorCode.INVALID_RECORD


def test_how_much_may_wait(
    connection: RawConnection, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    """What would be too much is refused; it is taken again when something was delivered."""
    topic = make_topic(delay_mode="header", delay_pending_max_bytes=10_000)
    value = b"x" * 3_000

    def produce(delay: str) -> int:
        record = Record(0, now_ms(), b"key", value, headers_of(delay=delay))
        return connection.produce(topic, encode_batch([record])).error_code

    assert [produce("1s") for _ in range(3)] == [0, 0, 0]
    assert produce(HOUR) == ErrorCode.POLICY_VIOLATION
    # An ordinary record does not wait.
    assert connection.produce(topic, batch(())).error_code == 0
    consume_in_time(confluent, topic, 4)
    assert produce(HOUR) == 0


# -- what becomes of what waits --------------------------------------------------------------------


def test_expiry(confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    """What expires before it is due is never delivered, and the log says so."""
    topic = make_topic(delay_mode="header")
    sent = [
        delayed(b"expired", "300ms", headwater_expire_at=str(now_ms() + 100)),
        delayed(b"in time", "300ms", headwater_expire_at=str(now_ms() + HOUR_MS)),
        delayed(b"behind", "400ms"),
    ]
    for message in sent:
        confluent.produce(topic, [message])
    found = consume_in_time(confluent, topic, 2)
    assert [each.value for each in found] == [b"in time", b"behind"]
    assert [each.original for each in in_log(broker.log_dir, topic) if each.kind] == [0]


@pytest.mark.parametrize("name", ["id", "offset", "whole id"])
def test_a_cancellation_is_a_record(
    name: str, confluent: ConfluentClient, broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    topic = make_topic(delay_mode="header")
    [offset] = confluent.produce(topic, [delayed(b"cancelled", "1s", headwater_delay_id="order-7")])
    confluent.produce(topic, [delayed(b"kept", "1s", headwater_delay_id="order-8")])
    named = {
        "id": headers_of(delay="cancel", delay_id="order-7"),
        "offset": headers_of(delay="cancel", delayed_offset=offset),
        "whole id": headers_of(delay="cancel", delayed_offset=f"{topic}-0@{offset}"),
    }
    confluent.produce(topic, [Message(b"", b"key", named[name])])
    # Of nothing that waits: it is counted and otherwise ignored.
    confluent.produce(topic, [Message(b"", b"key", headers_of(delay="cancel", delay_id="none"))])
    confluent.produce(topic, [delayed(b"last", "1001ms")])
    found = consume_in_time(confluent, topic, 2)
    assert [each.value for each in found] == [b"kept", b"last"]
    kinds = [each.kind for each in in_log(broker.log_dir, topic)]
    assert kinds.count(DelayedKind.CANCEL) == 2


def test_a_cancellation_of_several(confluent: ConfluentClient, make_topic: MakeTopic) -> None:
    """One id may name many messages, and all of them go."""
    topic = make_topic(delay_mode="header")
    for number in range(3):
        message = delayed(b"%d" % number, f"{1000 + number}ms", headwater_delay_id="the same")
        confluent.produce(topic, [message])
    confluent.produce(
        topic, [Message(None, b"key", headers_of(delay="cancel", delay_id="the same"))]
    )
    confluent.produce(topic, [delayed(b"last", "1100ms", headwater_delay_id="the same")])
    [found] = consume_in_time(confluent, topic, 1)
    assert found.value == b"last"
    assert ("headwater-delay-id", b"the same") in sent_headers(found)


def test_deleting_what_waits(confluent: ConfluentClient, make_topic: MakeTopic) -> None:
    """DeleteRecords takes real offsets, and deletes what waits in front of its own."""
    topic = make_topic(delay_mode="header")
    confluent.produce(topic, [Message(b"first")])
    [gone] = confluent.produce(topic, [delayed(b"gone", "1s")])
    [kept] = confluent.produce(topic, [delayed(b"kept", "1s")])
    assert confluent.delete_records(topic, gone + 1) == gone + 1
    assert confluent.end_offsets(topic) == (gone + 1, gone + 1)
    [found] = consume_in_time(confluent, topic, 1)
    assert (found.value, delayed_offset(found)) == (b"kept", kept)
