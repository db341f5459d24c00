"""What becomes of records that come to a retry topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import NOW_MS, PARTITION
from headwater.storage.append.delaying import delay_batch
from headwater.storage.log_config import NO_DELAYS, DelayMode, LogConfig, RetryRules
from headwater.wire.delayed.delayed_batch import (
    NEVER_MS,
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
)
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    DEAD_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
    ORIGIN_HEADER,
    RETRY_AFTER_HEADER,
)
from headwater.wire.records import (
    Header,
    InvalidRecordError,
    Record,
    encode_batch,
    read_batch_header,
)

DELAYS_MS = (5_000, 10_000, 30_000)


def rules(**changed: object) -> LogConfig:
    retry = RetryRules(DELAYS_MS, 4, "dlq.billing")._replace(**changed)  # type: ignore[arg-type]
    return LogConfig(delay=NO_DELAYS._replace(mode=DelayMode.RETRY, retry=retry))


def come(
    headers: tuple[Header, ...], config: LogConfig, now_ms: int = NOW_MS, key: bytes = b"k"
) -> DelayedRecord:
    """What one record becomes that comes to the topic."""
    data = encode_batch([Record(0, now_ms, key, b"value", headers)])
    made = delay_batch(data, 0, read_batch_header(data), config, now_ms, 1 << 20, PARTITION)
    assert made is not None
    (waiting,) = decode_delayed_batch(made)
    return waiting


def named(record: DelayedRecord) -> dict[str, bytes | None]:
    headers = record.record().headers
    assert len({name for name, _ in headers}) == len(headers), "a name that is there twice"
    return dict(headers)


def test_the_walk_of_the_notes() -> None:
    """Q1 5 s, Q2 10 s, and so on, the last delay again; then it is a dead letter."""
    headers: tuple[Header, ...] = ((ORIGIN_HEADER, b"orders-0@17"), ("mine", b"stays"))
    now_ms, waited_ms = NOW_MS, []
    for attempt in range(1, 6):
        waiting = come(headers, rules(), now_ms)
        seen = named(waiting)
        assert seen[ATTEMPTS_HEADER] == b"%d" % attempt
        assert seen[FIRST_FAILURE_HEADER] == b"%d" % NOW_MS
        assert seen[LAST_FAILURE_HEADER] == b"%d" % now_ms
        assert seen["mine"] == b"stays"
        assert seen[ORIGIN_HEADER] == b"orders-0@17"
        waited_ms.append(waiting.due_ms - now_ms)
        # It is delivered, fails again a second later and comes back as it was delivered.
        headers = waiting.record().headers
        now_ms = waiting.due_ms + 1000
    assert waited_ms[:4] == [*DELAYS_MS, DELAYS_MS[-1]]
    assert waiting.due_ms == NEVER_MS


def test_why_it_failed_first_stays_and_why_it_failed_last_is_told_anew() -> None:
    first = (("headwater-error", b"the bank is away"), ("headwater-error-class", b"OSError"))
    headers = come(first, rules()).record().headers
    again = [header for header in headers if not header[0].startswith("headwater-error")]
    later = come((*again, ("headwater-error", b"no money")), rules(), NOW_MS + 5000)
    found = named(later)
    assert found["headwater-first-error"] == b"the bank is away"
    assert found["headwater-first-error-class"] == b"OSError"
    assert found["headwater-error"] == b"no money"


def test_of_a_long_first_error_only_the_beginning_stays() -> None:
    error = "é".encode() * 5000
    found = named(come((("headwater-error", b"x" + error), ("mine", b"v")), rules()))
    assert found["headwater-first-error"] == b"x" + error[:510]
    assert "headwater-first-error" not in named(come((), rules()))


def test_what_is_hopeless_is_dead_at_once() -> None:
    waiting = come(((DEAD_HEADER, b"no such customer"),), rules())
    assert waiting.due_ms == NEVER_MS
    assert named(waiting)[DEAD_HEADER] == b"no such customer"


def test_a_handler_may_ask_for_its_own_delay() -> None:
    waiting = come(((RETRY_AFTER_HEADER, b"90s"),), rules())
    assert waiting.due_ms == NOW_MS + 90_000
    # It asked for this attempt, and not for the next.
    assert RETRY_AFTER_HEADER not in named(waiting)


@given(jitter=st.floats(0, 1), keys=st.lists(st.binary(min_size=1), min_size=2, unique=True))
def test_jitter_makes_later_and_never_earlier(jitter: float, keys: list[bytes]) -> None:
    dues = [come((), rules(jitter=jitter), key=key).due_ms - NOW_MS for key in keys]
    assert all(5_000 <= due <= 5_000 * (1 + jitter) for due in dues)


def test_no_delay_is_longer_than_the_topic_allows() -> None:
    config = LogConfig(
        delay=NO_DELAYS._replace(
            mode=DelayMode.RETRY, max_ms=6_000, retry=RetryRules((5_000,), 4, "dlq", jitter=1.0)
        )
    )
    dues_ms = [come((), config, key=b"%d" % number).due_ms - NOW_MS for number in range(20)]
    assert min(dues_ms) < max(dues_ms) == 6_000


def test_jitter_takes_apart_what_failed_together() -> None:
    dues = {come((), rules(jitter=1.0), key=b"%d" % number).due_ms for number in range(20)}
    assert len(dues) > 10


def test_a_stock_client_cancels_as_in_other_modes() -> None:
    headers = (("headwater-delay", b"cancel"), ("headwater-delayed-offset", b"17"))
    waiting = come(headers, rules())
    assert (waiting.kind, waiting.original) == (DelayedKind.CANCEL, 17)


@pytest.mark.parametrize(
    "came",
    [
        # As the snippets of docs/retry.md send it: as it came, and where it was read.
        (("headwater-delay-id", b"order-17"), (ORIGIN_HEADER, b"orders-0@17")),
        (("headwater-delayed-offset", b"17"), (ORIGIN_HEADER, b"orders-0@17")),
        # From a client that does not say where it was read.
        (("headwater-delay-id", b"order-17"),),
        (),
        # Delivered by a retry topic, or by one that takes delays, and sent on as it came.
        (("headwater-delayed-offset", b"17"), (ATTEMPTS_HEADER, b"1")),
        (("headwater-sent-at", b"5"), ("headwater-delayed-offset", b"17")),
    ],
    ids=str,
)
def test_what_failed_is_no_cancellation_whatever_headers_it_had(came: tuple[Header, ...]) -> None:
    waiting = come((("headwater-delay", b"cancel"), *came), rules())
    assert waiting.kind is DelayedKind.MESSAGE
    assert waiting.record().value == b"value"
    assert waiting.due_ms > NOW_MS


def test_what_a_record_once_asked_for_does_not_count_again() -> None:
    assert come((("headwater-delay", b"7d"),), rules()).due_ms == NOW_MS + DELAYS_MS[0]


@pytest.mark.parametrize(
    "header",
    [
        (ATTEMPTS_HEADER, b"-1"),
        (ATTEMPTS_HEADER, b"many"),
        (ATTEMPTS_HEADER, b"9" * 30),
        (ATTEMPTS_HEADER, b""),
        (FIRST_FAILURE_HEADER, b"yesterday"),
        (ORIGIN_HEADER, b"somewhere"),
        (ORIGIN_HEADER, b"../etc-0@1"),
        (ORIGIN_HEADER, None),
        (RETRY_AFTER_HEADER, b"soon"),
        (RETRY_AFTER_HEADER, b"\xff"),
        (RETRY_AFTER_HEADER, b"41d"),
    ],
    ids=str,
)
def test_headers_that_lie_are_refused(header: Header) -> None:
    with pytest.raises(InvalidRecordError, match="Record 0 of the batch"):
        come((header,), rules())
