"""The shop's stream keeps its promises for every seed: they are what the demo's check rests on."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.pipeline.demo.calculation import decode
from headwater.pipeline.demo.shop import (
    BREAK_MS,
    CATEGORIES,
    LATENESS_MS_MAX,
    OPENING_MS,
    ORDERS,
    PAYMENTS,
    TOO_LATE_MS_MIN,
    Kind,
    ShopRecord,
    make_stream,
    shop_time,
)
from tests.support.tiers import rounds

seeds = st.integers(0, 2**32)


def event_ms(record: ShopRecord) -> int:
    content = json.loads(record.value)
    text = content["placed_at"] if record.topic == ORDERS else content["paid_at"]
    hour, minute, second = text[11:-1].split(":")
    return round(1000 * ((int(hour) - 9) * 3600 + int(minute) * 60 + float(second)))


def test_a_seed_always_gives_the_same_stream() -> None:
    assert make_stream(7, 200) == make_stream(7, 200)
    assert make_stream(7, 200) != make_stream(8, 200)


@settings(max_examples=rounds(15, 200), deadline=None)
@given(seeds, st.integers(200, 800))
def test_what_is_late_is_not_too_late_and_what_is_too_late_is(seed: int, order_count: int) -> None:
    stream = make_stream(seed, order_count)
    newest_ms = {ORDERS: -1, PAYMENTS: -1}
    for record in stream.first_wave:
        assert record.sent_ms < BREAK_MS
        assert record.kind is not Kind.TOO_LATE
        if record.kind is not Kind.REJECT:
            happened_ms = event_ms(record)
            assert happened_ms > newest_ms[record.topic] - LATENESS_MS_MAX
            newest_ms[record.topic] = max(newest_ms[record.topic], happened_ms)
    slower_ms = min(newest_ms.values())
    for record in stream.second_wave:
        assert record.sent_ms >= BREAK_MS
        if record.kind is Kind.TOO_LATE:
            assert event_ms(record) <= slower_ms - TOO_LATE_MS_MIN
        elif record.kind is not Kind.REJECT:
            happened_ms = event_ms(record)
            assert happened_ms > newest_ms[record.topic] - LATENESS_MS_MAX
            newest_ms[record.topic] = max(newest_ms[record.topic], happened_ms)


@settings(max_examples=rounds(15, 100), deadline=None)
@given(seeds)
def test_rejects_are_the_only_records_that_do_not_fit(seed: int) -> None:
    for record in make_stream(seed, 300).records:
        assert (decode(record.topic, record.value) is None) == (record.kind is Kind.REJECT)


def test_a_stream_has_some_of_everything() -> None:
    stream = make_stream(1, 5_000)
    kinds = Counter((record.topic, record.kind) for record in stream.records)
    for topic in (ORDERS, PAYMENTS):
        for kind in (Kind.ORDINARY, Kind.LATE, Kind.TWICE, Kind.REJECT):
            assert kinds[topic, kind] >= 10
    assert kinds[ORDERS, Kind.TOO_LATE] >= 3
    assert len(stream.first_wave) > 2 * len(stream.second_wave) > 1_000
    sold = Counter(
        json.loads(record.value)["category"]
        for record in stream.records
        if record.topic == ORDERS and record.kind is Kind.ORDINARY
    )
    assert sold.keys() == {category.name for category in CATEGORIES}


def test_every_duplicate_comes_after_the_record_that_it_repeats() -> None:
    seen: set[bytes] = set()
    for record in make_stream(3, 2_000).records:
        assert (record.value in seen) == (record.kind is Kind.TWICE) or record.kind is Kind.REJECT
        seen.add(record.value)


def test_times_are_written_to_the_millisecond() -> None:
    assert shop_time(0) == "2026-03-02T09:00:00.000Z"
    assert shop_time(61_007) == "2026-03-02T09:01:01.007Z"
    assert OPENING_MS % 60_000 == 0
