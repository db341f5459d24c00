"""What is produced of a record that could not be handled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import (
    ERROR_BYTES_MAX,
    STACK_BYTES_MAX,
    dead_record,
    origin_of,
    retry_record,
    without_contents,
)
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


def test_without_contents_the_name_and_the_reason_remain() -> None:
    produced = without_contents(retry_record(make_record(), "away", group="g"), "too large")
    assert (produced.key, produced.value) == (None, None)
    assert headers_of(produced) == {
        "headwater-origin": b"orders-3@1234",
        "headwater-error": b"too large",
        "headwater-dead": b"too large",
    }


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
