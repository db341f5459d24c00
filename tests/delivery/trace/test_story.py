"""The timeline of made-up messages, event by event."""

from dataclasses import replace

import pytest

from headwater.base.message_id import MessageId
from headwater.delivery.trace.event import AT_THE_LATEST, Source, What
from headwater.delivery.trace.sentences import exactness, sentence
from headwater.delivery.trace.station import Station, TransactionState, parents_of
from headwater.delivery.trace.story import tell
from headwater.delivery.trace.timeline import ClockSkew, Timeline
from headwater.delivery.trace.waits import waits_of
from tests.support.traces.made_up import (
    SPAN_ID,
    audited,
    event_of,
    failures,
    group_row,
    log_row,
    ms,
    names,
    station,
    step,
    told,
    traceparent,
)

PLACE = "orders-0@1234"


def waits(timeline: Timeline, stations: list[Station]) -> list[str]:
    return [wait.text for wait in waits_of(timeline.events, parents_of(stations))]


def test_a_record_of_a_stock_client_with_two_groups() -> None:
    known = audited(
        station(PLACE, 0.2),
        log_row(PLACE, (0, 1234, 1234), (1, 1240, 1234), (2, 1240, 1234), (3, 1240, 1240)),
        group_row(PLACE, "billing", (44, 1240)),
        group_row(PLACE, "mail", (10, 1230), (10.8, 1235), (20, 1240), commits=9),
    )
    timeline = tell([known])
    assert told(timeline) == [
        ("created", 0.2, 0),
        ("appended", 1.0, 1000),
        ("replicated", 3.0, 1000),
        ("passed", 10.8, 800),
        ("passed", 44.0, 0),
    ]
    assert waits(timeline, [known]) == [
        "at most 800 ms on the way to the broker",
        "waited 2 s for replication",
        "7.8 s of lag in mail",
        "41 s of lag in billing",
    ]
    appended = event_of(timeline, What.APPENDED)
    assert (appended.source, appended.clock) == (Source.AUDIT, "broker-1")
    assert appended.details["producer_id"] == 4711
    assert appended.details["sequence"] == 40
    assert event_of(timeline, What.PASSED, "mail").clock == "broker-2"
    assert [exactness(event) for event in timeline.events] == [
        "exact",
        "within 1 s",
        "within 1 s",
        "within 800 ms",
        "exact",
    ]


def test_without_an_audit_the_record_alone_tells() -> None:
    assert told(tell([station(PLACE, 0.2)])) == [("created", 0.2, 0)]
    own_time = tell([station(PLACE, 0.2, is_append_time=True)])
    assert told(own_time) == [("appended", 0.2, 0)], "the broker gave it that time"


def test_a_leader_that_came_later_knows_only_that_it_was_there() -> None:
    rows = log_row(PLACE, (9, 1240, 1230), (10, 1240, 1240), leader_epoch=4)
    timeline = tell([audited(station(PLACE, 0.2), rows)])
    assert told(timeline) == [
        ("created", 0.2, 0),
        ("appended", 9.0, AT_THE_LATEST),
        ("leader_changed", 9.0, AT_THE_LATEST),
        ("replicated", 10.0, 1000),
    ]
    assert exactness(timeline.events[1]) == "or earlier"
    assert waits(timeline, [audited(station(PLACE, 0.2), rows)]) == [
        "at most 8.8 s on the way to the broker",
        "waited at least 1 s for replication",
    ]
    assert sentence(timeline.events[2]) == "broker-1 leads: epoch 3 became 4"


def test_a_leader_change_between_send_and_acknowledgement() -> None:
    rows = log_row(PLACE, (9, 1240, 1230), (10, 1240, 1240), leader_epoch=4)
    known = audited(station(PLACE, 0.2, traceparent()), rows)
    steps = [
        step("created", 0.2),
        step("sent", 0.3),
        step("retried", 8.0, attempt=2),
        step("acknowledged", 10.1, PLACE),
    ]
    timeline = tell([known], steps)
    assert names(timeline) == [
        "created",
        "sent",
        "retried",
        "appended",
        "leader_changed",
        "replicated",
        "acknowledged",
    ]
    assert "waited 9.8 s for the acknowledgement" in waits(timeline, [known])
    assert timeline.skews == []


def test_a_group_that_goes_back_passes_once_more() -> None:
    row = group_row(PLACE, "billing", (5, 1300), (6, 1200), (9, 1300))
    timeline = tell([audited(station(PLACE, 0.2), row)])
    assert told(timeline)[1:] == [("passed", 5, 0), ("went_back", 6, 0), ("passed", 9, 0)]


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (TransactionState.COMMITTED, "transaction_committed"),
        (TransactionState.ABORTED, "transaction_aborted"),
    ],
)
def test_the_end_of_a_transaction(state: TransactionState, what: str) -> None:
    known = audited(
        station(PLACE, 0, transaction=state, ended=7),
        log_row(PLACE, (0, 1234, 1234), (1, 1235, 1235)),
    )
    timeline = tell([known])
    assert told(timeline)[-1] == (what, 7.0, 0)
    assert waits(timeline, [known])[-1] == "waited 6 s for its transaction to end"


def test_a_delayed_message_is_known_by_where_it_waited() -> None:
    headers = (
        ("headwater-delay", b"29500ms"),
        ("headwater-sent-at", str(ms(0)).encode()),
        ("headwater-delayed-offset", b"1200"),
        ("headwater-order", b"1/2/3"),
    )
    rows = (
        log_row("orders-0@1200", (0, 1200, 1200), (1, 1201, 1201)),
        log_row(PLACE, (29, 1234, 1234), (31, 1240, 1240)),
    )
    known = audited(station(PLACE, 30, *headers), *rows, waited=True)
    timeline = tell([known])
    assert told(timeline) == [
        ("created", 0, 0),
        ("appended", 1, 1000),
        ("replicated", 1, 1000),
        ("delivered", 31, 1000),
    ]
    delivered = event_of(timeline, What.DELIVERED)
    assert delivered.place == MessageId.parse(PLACE)
    assert event_of(timeline, What.APPENDED).place == MessageId("orders", 0, 1200)
    assert waits(timeline, [known])[-1] == "waited 30 s as asked (delay)"
    moved = audited(station(PLACE, 90, *headers), *rows, waited=True)
    assert waits(tell([moved]), [moved])[-1] == "waited 1 min 29 s until its time (delay)"
    late = audited(station(PLACE, 30, *headers), log_row(PLACE, (29, 1234, 1), (30.2, 1240, 2)))
    assert told(tell([late]))[-1] == ("delivered", 30.2, 200), "never before it was due"


def test_attempts_a_dead_letter_and_the_way_back() -> None:
    stations = failures(
        (1, 2, 7, "retry.billing-0@1"),
        (2, 8, 18, "retry.billing-0@3"),
        (3, 19, 19.5, "dlq.billing-0@0"),
    )
    back = station(
        "orders-0@2000",
        100,
        ("headwater-origin", PLACE.encode()),
        ("headwater-redrives", b"1"),
    )
    stations.append(back)
    assert parents_of(stations) == {0: None, 1: 0, 2: 1, 3: 2, 4: 3}
    timeline = tell(stations)
    assert told(timeline) == [
        ("created", 0, 0),
        ("sent_on", 2, 0),
        ("delivered", 7, 0),
        ("sent_on", 8, 0),
        ("delivered", 18, 0),
        ("sent_on", 19, 0),
        ("dead_letter", 19.5, 0),
        ("sent_back", 100, 0),
    ]
    assert [event.attempt for event in timeline.events] == [None, 1, 1, 2, 2, 3, 3, 1]
    assert waits(timeline, stations) == [
        "retry 1 after 5 s",
        "1 s of lag in billing",
        "retry 2 after 10 s",
        "1 s of lag in billing",
        "waited 500 ms for being moved to the dead-letter topic",
        "lay 1 min 20 s as a dead letter",
    ]
    sent_on, gave_up = timeline.events[1], timeline.events[5]
    assert sentence(sent_on) == (
        "billing sent it to retry.billing-0@0: attempt 1 failed: no such currency"
    )
    assert sentence(gave_up) == "billing gave it up: attempt 3 failed: no such currency"


def test_what_another_group_did_is_not_what_sent_it_on() -> None:
    stations = failures((1, 2, 7, "retry.billing-0@1"))
    stations[0] = audited(stations[0], group_row(PLACE, "mail", (50, 2000)))
    assert names(tell(stations)) == ["created", "sent_on", "delivered", "passed"]


def test_steps_of_the_same_message_are_told_and_those_of_others_are_not() -> None:
    known = station(PLACE, 0, traceparent())
    steps = [
        step("created", 0),
        step("sent", 0.1),
        step("acknowledged", 0.2, PLACE),
        step("fetched", 0.3, PLACE, host="worker-1", group="billing"),
        step("handled", 0.4, PLACE, host="worker-1", group="billing"),
        step("committed", 0.5, PLACE, host="worker-1", group="billing"),
        step("created", 0.35, span_id="1" * 16),
        step("acknowledged", 0.36, "mails-0@9", span_id="1" * 16),
    ]
    timeline = tell([known], steps)
    assert names(timeline) == [
        "created",
        "sent",
        "acknowledged",
        "fetched",
        "handled",
        "committed",
    ]
    assert timeline.events[0].source is Source.WRITTEN, "the producer knows better than the record"
    assert SPAN_ID in str(timeline.events[0].details)


def test_a_step_that_a_later_version_writes_is_told_by_its_name() -> None:
    timeline = tell([station(PLACE, 0)], [step("batch", 3, PLACE, host="spark")])
    assert sentence(timeline.events[-1]) == "batch"


def test_a_trace_without_a_message_is_told_too() -> None:
    steps = [step("failed", 2, error="TimeoutError: gone"), step("created", 1)]
    timeline = tell([], steps)
    assert names(timeline) == ["created", "failed"]


def test_causes_come_first_where_clocks_disagree_and_the_clock_is_named() -> None:
    known = audited(
        station(PLACE, 9, traceparent()),
        log_row(PLACE, (0, 1234, 1234), (1, 1240, 1240)),
        group_row(PLACE, "billing", (3, 1240)),
    )
    steps = [
        step("created", 9),
        step("acknowledged", 9.4, PLACE),
        step("fetched", 0.5, PLACE, host="worker-1", group="billing"),
        step("handled", 0.6, PLACE, host="worker-1", group="billing"),
    ]
    timeline = tell([known], steps)
    assert names(timeline) == [
        "created",
        "appended",
        "replicated",
        "fetched",
        "handled",
        "passed",
        "acknowledged",
    ]
    assert ClockSkew("shop-1", "broker-1", 8_000) in timeline.skews
    assert ClockSkew("shop-1", "worker-1", 8_500) in timeline.skews
    assert all(skew.clock == "shop-1" for skew in timeline.skews)
    assert min(wait.duration_ms for wait in waits_of(timeline.events, {0: None})) == 0


def test_a_client_hears_of_its_commit_after_the_broker_has_it() -> None:
    known = audited(station(PLACE, 0, traceparent()), group_row(PLACE, "billing", (3, 1240)))
    steps = [
        step("fetched", 2, PLACE, host="worker-1", group="billing"),
        step("committed", 3.5, PLACE, host="worker-1", group="billing"),
    ]
    timeline = tell([known], steps)
    assert names(timeline) == ["created", "fetched", "passed", "committed"]
    assert timeline.skews == []


def test_what_is_good_to_a_second_is_no_clock_that_is_wrong() -> None:
    known = audited(station(PLACE, 0.9), log_row(PLACE, (0.5, 1234, 1234), (1.5, 1240, 1240)))
    timeline = tell([known], [step("fetched", 1.0, PLACE, host="worker-1", group="billing")])
    assert timeline.skews == []
    assert names(timeline) == ["created", "appended", "replicated", "fetched"]


def test_what_followed_by_the_same_clock_tells_times_more_exactly() -> None:
    stations = failures((1, 2, 7, "retry.billing-0@1"))
    row = log_row("retry.billing-0@1", (6.9, 1, 1), (7.9, 2, 2))
    passed = group_row("retry.billing-0@1", "billing", (7.2, 2)) | {"host": "broker-1"}
    stations[1] = audited(stations[1], row, passed)
    timeline = tell(stations)
    assert told(timeline)[-2:] == [("delivered", 7.2, 200), ("passed", 7.2, 0)]


def test_headers_that_make_no_sense_are_as_if_they_were_not_there() -> None:
    odd = station(
        "orders-0@7",
        1,
        ("headwater-origin", b"\xff nothing"),
        ("headwater-attempts", b"many"),
        ("headwater-last-failure", b""),
        ("headwater-delayed-offset", b"-3"),
        ("headwater-order", b"x"),
        ("traceparent", b"00-zz"),
    )
    assert names(tell([odd])) == ["created"]
    assert replace(odd).waited_at is None
