"""What is produced of a record that could not be handled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import (
    ERROR_BYTES_MAX,
    STACK_BYTES_MAX,
    dead_record,
    origin_of,
    retry_record,
)
from headwater.client.failures.refused_record import reduced
from headwater.client.failures.verdicts import DeadLetter, Retry, after_ms_of
from headwater.client.producer.record import ProducerRecord
from headwater.wire.delayed import headers as names
from headwater.wire.records import Header, TimestampType

OURS = sorted(
    value for name, value in vars(names).items() if name.endswith("_HEADER") and "-" in value
)
#: What a record may come with: also what asks for delays, which is its sender's business.
KEPT = {names.DELAY_HEADER, names.DELIVER_AT_HEADER, names.DELAY_ID_HEADER, names.EXPIRE_AT_HEADER}


def make_record(*headers: Header, topic: str = "orders") -> ConsumerRecord:
    return ConsumerRecord(
        topic, 3, 1234, 5, TimestampType.CREATE_TIME, b"key", b"value", tuple(headers), 0
    )


def headers_of(produced: ProducerRecord) -> dict[str, bytes]:
    """By name, of which there must be no two."""
    pairs: list[Any] = list(produced.headers or ())
    found = dict(pairs)
    assert len(found) == len(pairs)
    return found


def test_it_goes_as_it_came_with_what_went_wrong() -> None:
    try:
        raise OSError("the database is away")
    except OSError as error:
        produced = retry_record(make_record(("mine", b"kept")), error, group="billing")
    assert (produced.topic, produced.key, produced.value) == ("retry.billing", b"key", b"value")
    found = headers_of(produced)
    assert found["mine"] == b"kept"
    assert found["headwater-origin"] == b"orders-3@1234"
    assert found["headwater-error"] == b"the database is away"
    assert found["headwater-error-class"] == b"OSError"
    assert b"test_failed_record.py" in found["headwater-error-stack"]
    assert "headwater-retry-after" not in found
    assert "headwater-dead" not in found


def test_what_is_known_of_earlier_attempts_goes_round_and_the_last_error_does_not() -> None:
    came = make_record(
        ("headwater-origin", b"orders-0@7"),
        ("headwater-attempts", b"2"),
        ("headwater-error", b"old"),
        ("headwater-retry-after", b"9s"),
        ("headwater-dead", b"old"),
        ("headwater-sent-at", b"1"),
        ("headwater-delayed-offset", b"2"),
        ("headwater-order", b"3"),
        topic="retry.billing",
    )
    found = headers_of(retry_record(came, "new", group="billing"))
    assert found == {
        "headwater-attempts": b"2",
        "headwater-origin": b"orders-0@7",
        "headwater-error": b"new",
    }


def test_verdicts_say_when_and_whether() -> None:
    record = make_record()
    found = headers_of(retry_record(record, Retry("busy", after=1.5), group="g"))
    assert found["headwater-retry-after"] == b"1500ms"
    found = headers_of(retry_record(record, Retry("busy", after="5s"), group="g", after="1m"))
    assert found["headwater-retry-after"] == b"1m"
    found = headers_of(retry_record(record, DeadLetter("nonsense"), group="g"))
    assert found["headwater-dead"] == b"nonsense"
    found = headers_of(dead_record(record, ValueError("x"), group="g", reason="why"))
    assert (found["headwater-error"], found["headwater-dead"]) == (b"x", b"why")


@pytest.mark.parametrize(
    ("after", "expected_ms"),
    [("30s", 30_000), (2, 2000), (0.0001, 1), (timedelta(minutes=1), 60_000)],
)
def test_a_time_is_text_seconds_or_a_timedelta(
    after: str | float | timedelta, expected_ms: int
) -> None:
    assert after_ms_of(after) == expected_ms


@pytest.mark.parametrize("after", [-1, "soon", None, True, float("nan"), timedelta(seconds=-1)])
def test_a_time_that_is_none_is_refused(after: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        after_ms_of(after)  # type: ignore[arg-type]


def test_an_error_that_cannot_be_told_is_told_by_its_class() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    found = headers_of(retry_record(make_record(), Broken(), group="g"))
    assert found["headwater-error"] == b"Broken"


def refused(produced: ProducerRecord, code: ErrorCode) -> list[tuple[ProducerRecord, bool, str]]:
    """All that is tried of a record that is refused again and again."""
    tried = []
    while (less := reduced(produced, code, "too much")) is not None:
        produced = less.produced
        tried.append((produced, less.is_dead, less.without))
    return tried


def test_what_is_refused_loses_key_and_value_last() -> None:
    came = make_record(("mine", b"kept"), ("headwater-attempts", b"2"))
    asked = retry_record(came, Retry("busy", after="400d"), group="g")
    policy, bare, empty = refused(asked, ErrorCode.INVALID_RECORD)
    # By the policy's delay, and all else as it came.
    assert (policy[1], policy[2]) == (False, "its headwater-retry-after")
    assert headers_of(policy[0]) == {
        name: value for name, value in headers_of(asked).items() if name != "headwater-retry-after"
    }
    assert (policy[0].key, policy[0].value) == (b"key", b"value")
    told = {
        "headwater-origin": b"orders-3@1234",
        "headwater-error": b"too much",
        "headwater-dead": b"too much",
    }
    assert (bare[0].key, bare[0].value, headers_of(bare[0])) == (b"key", b"value", told)
    assert (empty[0].key, empty[0].value, headers_of(empty[0])) == (None, None, told)
    assert [each[1:] for each in (bare, empty)] == [(True, "its headers"), (True, "key and value")]


def test_what_is_too_large_goes_without_its_stack_first() -> None:
    try:
        raise Retry("away", after="1m")
    except Retry as error:
        produced = retry_record(make_record(("mine", b"kept")), error, group="g")
    less, *_ = refused(produced, ErrorCode.MESSAGE_TOO_LARGE)
    assert (less[1], less[2]) == (False, "its headwater-error-stack")
    found = headers_of(less[0])
    assert (found["mine"], found["headwater-retry-after"]) == (b"kept", b"1m")
    assert "headwater-error-stack" not in found


def test_a_dead_letter_that_is_refused_stays_one() -> None:
    letter = dead_record(make_record(), DeadLetter("nonsense"), group="g")
    tried = refused(letter, ErrorCode.INVALID_RECORD)
    assert [is_dead for _, is_dead, _ in tried] == [True, True]


def test_attempts_that_nobody_saw_fail_are_counted() -> None:
    found = headers_of(retry_record(make_record(), "died", group="g", failure_count=3))
    assert found["headwater-attempts"] == b"2", "the broker counts the last one"
    came = make_record(("headwater-attempts", b"3"))
    found = headers_of(retry_record(came, "died", group="g", failure_count=3))
    assert found["headwater-attempts"] == b"5"
    delays_ms = (5_000, 10_000, 30_000, 60_000)
    died = retry_record(make_record(), "died", group="g", failure_count=3, queues_ms=delays_ms)
    assert died.topic == "retry.g.30s"


def test_a_number_without_end_is_as_if_it_were_not_there() -> None:
    came = make_record(("headwater-attempts", b"9" * 5000))
    produced = retry_record(came, "x", group="g", queues_ms=(5_000, 10_000), failure_count=2)
    assert produced.topic == "retry.g.10s"
    assert headers_of(produced)["headwater-attempts"] == b"1"


@given(
    st.lists(st.tuples(st.sampled_from(OURS), st.none() | st.binary(max_size=30))),
    st.text(max_size=3000),
)
def test_whatever_came_no_header_is_there_twice_and_none_is_long(
    headers: list[Header], message: str
) -> None:
    record = make_record(*(header for header in headers if header[0] not in KEPT))
    produced = retry_record(record, ValueError(message), group="g")
    found = headers_of(produced)
    assert len(found["headwater-error"]) <= ERROR_BYTES_MAX
    found["headwater-error"].decode()
    assert len(found.get("headwater-error-stack", b"")) <= STACK_BYTES_MAX
    again = record._replace(headers=tuple(found.items()))
    assert origin_of(again) == origin_of(record)
    for name in ("headwater-attempts", "headwater-first-failure", "headwater-last-failure"):
        assert found.get(name, b"0").isdigit()
