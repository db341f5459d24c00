"""Dead letters of all families are read alike, and no header makes reading fail."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.message_id import MessageId
from headwater.delivery.redrive.letters.families import Family
from headwater.delivery.redrive.letters.json_lines import (
    LetterLineError,
    letter_line,
    read_letter_line,
)
from headwater.delivery.redrive.letters.letter import read_letter
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from tests.support.values.dead_letters import letter_record

NAMES = [
    "headwater-origin", "headwater-attempts", "headwater-redrives", "headwater-last-failure",
    "headwater-error", "__dlq.errors.topic", "__dlq.errors.partition", "__dlq.errors.offset",
    "kafka_dlt-original-topic", "kafka_dlt-original-partition", "kafka_dlt-original-offset",
    "kafka_dlt-exception-fqcn", "retry_topic-attempts", "__connect.errors.topic",
    "__connect.errors.offset", "__connect.errors.connector.name", "other",
]  # fmt: skip
HEADERS = st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.binary(max_size=20)))


def test_a_letter_of_headwater_tells_everything() -> None:
    letter = read_letter(
        letter_record(
            ("headwater-origin", b"orders-0@1234"),
            ("headwater-attempts", b"6"),
            ("headwater-first-failure", b"1000"),
            ("headwater-last-failure", b"2000"),
            ("headwater-first-error", b"the bank is closed"),
            ("headwater-first-error-class", b"bank.Closed"),
            ("headwater-error", b"no money"),
            ("headwater-error-class", b"bank.Refused"),
            ("headwater-error-stack", b"line 1"),
            ("headwater-redrives", b"2"),
            ("__dlq.errors.group", b"billing"),
        )
    )
    failure = letter.failure
    assert (letter.family, letter.group) == (Family.HEADWATER, "billing")
    assert letter.origin == letter.home == MessageId("orders", 0, 1234)
    assert (failure.attempts, failure.first_failure_ms, letter.last_failure_ms) == (6, 1000, 2000)
    assert (failure.error_class, failure.error_message) == ("bank.Refused", "no money")
    first = (failure.first_error_class, failure.first_error_message)
    assert first == ("bank.Closed", "the bank is closed")
    assert (failure.error_stack, letter.redrives, letter.error) == ("line 1", 2, "Refused")


def test_a_letter_of_a_share_group_has_kafkas_headers_only() -> None:
    letter = read_letter(
        letter_record(
            ("__dlq.errors.topic", b"orders"),
            ("__dlq.errors.partition", b"3"),
            ("__dlq.errors.offset", b"77"),
            ("__dlq.errors.group", b"share"),
            ("__dlq.errors.delivery.count", b"5"),
            ("__dlq.errors.message", b"rejected"),
        )
    )
    assert (letter.home, letter.group) == (MessageId("orders", 3, 77), "share")
    assert (letter.failure.attempts, letter.failure.error_message) == (5, "rejected")


@pytest.mark.parametrize("is_binary", [True, False])
def test_a_letter_of_spring(is_binary: bool) -> None:
    def integer(value: int, form: str) -> bytes:
        return struct.pack(form, value) if is_binary else str(value).encode()

    letter = read_letter(
        letter_record(
            ("kafka_dlt-original-topic", b"orders"),
            ("kafka_dlt-original-partition", integer(2, ">i")),
            ("kafka_dlt-original-offset", integer(1234, ">q")),
            ("kafka_dlt-original-timestamp", integer(1_700_000_000_123, ">q")),
            ("kafka_dlt-original-consumer-group", b"billing"),
            # Of a retry topic on the way: where it was at first stands in front.
            ("kafka_dlt-original-topic", b"orders-retry-0"),
            ("kafka_dlt-original-timestamp", integer(1_800_000_000_123, ">q")),
            ("kafka_dlt-exception-fqcn", b"org.springframework.Wrapped"),
            ("kafka_dlt-exception-cause-fqcn", b"shop.NoMoney"),
            ("kafka_dlt-exception-message", b"no money"),
            ("retry_topic-attempts", integer(4, ">i")),
        )
    )
    assert (letter.family, letter.group) == (Family.SPRING, "billing")
    assert letter.home == MessageId("orders", 2, 1234)
    assert (letter.failure.attempts, letter.error) == (4, "NoMoney")
    assert letter.last_failure_ms == letter.record.timestamp
    assert letter.failure.original_timestamp_ms == 1_700_000_000_123


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [
        # As Java's BigInteger writes it.
        ((1_700_000_000_123).to_bytes(6, "big"), 1_700_000_000_123),
        (b"\x05", 5),
        (b"\xff", None),
        (b"", None),
        (None, None),
        (bytes(9), None),
    ],
)
def test_springs_retry_topics_tell_when_a_record_was_produced(
    value: bytes | None, expected_ms: int | None
) -> None:
    letter = read_letter(
        letter_record(
            ("retry_topic-original-timestamp", value), ("kafka_dlt-exception-fqcn", b"shop.NoMoney")
        )
    )
    assert letter.failure.original_timestamp_ms == expected_ms


def test_a_letter_of_connect() -> None:
    letter = read_letter(
        letter_record(
            ("__connect.errors.topic", b"orders"),
            ("__connect.errors.partition", b"0"),
            ("__connect.errors.offset", b"9"),
            ("__connect.errors.connector.name", b"sink"),
            ("__connect.errors.exception.class.name", b"org.apache.DataException"),
            ("__connect.errors.exception.message", b"bad"),
        )
    )
    assert (letter.family, letter.group) == (Family.CONNECT, "connect-sink")
    assert (letter.home, letter.error) == (MessageId("orders", 0, 9), "DataException")


def test_a_place_in_the_retry_topic_is_a_name_and_no_home() -> None:
    letter = read_letter(
        letter_record(
            ("headwater-origin", b"retry.billing-0@5"), ("__dlq.errors.group", b"billing")
        )
    )
    assert (letter.origin, letter.home) == (MessageId("retry.billing", 0, 5), None)


@given(HEADERS)
def test_no_header_makes_reading_fail(headers: list[tuple[str, bytes | None]]) -> None:
    letter = read_letter(letter_record(*headers))
    assert letter.redrives >= 0
    assert letter.home is None or letter.home.offset >= 0
    LetterFilter(error="x", topic="orders", from_ms=5).matches(letter)


@given(HEADERS, st.none() | st.binary(), st.none() | st.binary())
def test_a_line_of_json_loses_nothing(
    headers: list[tuple[str, bytes | None]], key: bytes | None, value: bytes | None
) -> None:
    record = letter_record(*headers)._replace(key=key, value=value)
    stored = read_letter_line(letter_line(read_letter(record)))
    assert stored.as_record()._replace(leader_epoch=record.leader_epoch) == record


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", "should be an object"),
        ('{"key": 5}', "text, null or"),
        ('{"value": {"base64": "*"}}', "is not base64"),
        ('{"id": "nowhere"}', "is not the id of a message"),
        ('{"headers": [["a"]]}', "a pair of a name and a value"),
        ('{"headers": {"a": "b"}}', "a pair of a name and a value"),
        ('{"headers": [[1, "b"]]}', "a pair of a name and a value"),
        ('{"timestamp_ms": "soon"}', "invalid literal"),
    ],
)
def test_a_line_that_is_no_letter_is_told(line: str, sentence: str) -> None:
    with pytest.raises(LetterLineError, match=sentence):
        read_letter_line(line)
