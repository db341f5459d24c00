"""The calculation against one that tries every pair and sums every window by itself."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.pipeline.demo.calculation import Revenue, Rules, calculate, decode
from headwater.pipeline.demo.shop import (
    MINUTE_MS,
    ORDERS,
    PAYMENTS,
    Kind,
    ShopRecord,
    ShopStream,
    make_stream,
    shop_time,
)
from tests.support.tiers import rounds

RULES = Rules(window_ms=MINUTE_MS, lateness_ms=10 * MINUTE_MS, payment_within_ms=15 * MINUTE_MS)


def contents(stream: ShopStream, topic: str) -> list[dict[str, Any]]:
    """Of each id the first, without what the generator says is malformed or too late."""
    found: dict[str, dict[str, Any]] = {}
    id_name = "order_id" if topic == ORDERS else "payment_id"
    for record in stream.records:
        if record.topic == topic and record.kind not in (Kind.REJECT, Kind.TOO_LATE):
            content = json.loads(record.value)
            found.setdefault(content[id_name], content)
    return list(found.values())


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@settings(max_examples=rounds(8, 60), deadline=None)
@given(st.integers(0, 2**32), st.integers(200, 400))
def test_results_are_those_of_brute_force(seed: int, order_count: int) -> None:
    stream = make_stream(seed, order_count)
    result = calculate(stream, RULES)

    orders, payments = contents(stream, ORDERS), contents(stream, PAYMENTS)
    pairs = {
        (order["order_id"], payment["payment_id"])
        for order in orders
        for payment in payments
        if order["order_id"] == payment["order_id"]
        and 0 <= (moment(payment["paid_at"]) - moment(order["placed_at"])).total_seconds() <= 900
    }
    assert {(row.order_id, row.payment_id) for row in result.paid_orders} == pairs
    assert len(result.paid_orders) == len(pairs)

    for (start_ms, category), revenue in result.revenue.items():
        inside = [
            order["amount_cents"]
            for order in orders
            if order["category"] == category
            and start_ms <= moment(order["placed_at"]).timestamp() * 1000 < start_ms + MINUTE_MS
        ]
        assert revenue == Revenue(len(inside), sum(inside))
    assert sum(revenue.order_count for revenue in result.revenue.values()) == len(orders)

    newest_ms = max(moment(order["placed_at"]).timestamp() * 1000 for order in orders)
    assert result.closed_revenue == {
        (start_ms, category): revenue
        for (start_ms, category), revenue in result.revenue.items()
        if start_ms + MINUTE_MS <= newest_ms - 10 * MINUTE_MS
    }
    assert result.closed_revenue

    kinds = [(record.topic, record.kind) for record in stream.records]
    assert result.late_order_count == kinds.count((ORDERS, Kind.TOO_LATE))
    assert result.second_time_count == kinds.count((ORDERS, Kind.TWICE))
    for topic in (ORDERS, PAYMENTS):
        assert len(result.rejected[topic]) == kinds.count((topic, Kind.REJECT))


def shop_record(topic: str, number: int, **content: object) -> ShopRecord:
    value = json.dumps(content).encode()
    return ShopRecord(number, number, topic, b"", value, Kind.ORDINARY)


def order(number: int, placed_ms: int, order_id: str = "o") -> ShopRecord:
    return shop_record(
        ORDERS,
        number,
        order_id=order_id,
        customer_id="c",
        category="books",
        quantity=1,
        amount_cents=100 + number,
        placed_at=shop_time(placed_ms),
    )


def payment(number: int, paid_ms: int, order_id: str = "o") -> ShopRecord:
    return shop_record(
        PAYMENTS,
        number,
        payment_id=f"p-{number}",
        order_id=order_id,
        method="card",
        paid_cents=1,
        paid_at=shop_time(paid_ms),
    )


def test_the_first_of_two_counts_and_payments_count_up_to_the_limit() -> None:
    limit_ms = RULES.payment_within_ms
    stream = ShopStream(
        0,
        (
            order(1, 1_000),
            order(2, 1_000),
            payment(3, 1_000),
            payment(4, 1_000 + limit_ms),
            payment(5, 1_001 + limit_ms),
            payment(6, 999),
        ),
        (),
    )
    result = calculate(stream, RULES)
    assert sorted(row.payment_id for row in result.paid_orders) == ["p-3", "p-4"]
    assert list(result.revenue.values()) == [Revenue(1, 101)]
    assert result.second_time_count == 1


def test_the_second_wave_is_cut_at_the_watermark_and_the_join_at_the_slower_one() -> None:
    """Orders have come up to minute 30, payments up to 25: the join waits for payments."""
    stream = ShopStream(
        0,
        (order(1, 30 * MINUTE_MS, "a"), payment(2, 25 * MINUTE_MS, "z")),
        (
            order(3, 20 * MINUTE_MS - 1, "too late for revenue"),
            order(4, 20 * MINUTE_MS, "in time"),
            order(5, 15 * MINUTE_MS - 1, "too late for both"),
            payment(6, 20 * MINUTE_MS, "too late for revenue"),
            payment(7, 20 * MINUTE_MS, "in time"),
            payment(8, 20 * MINUTE_MS, "too late for both"),
        ),
    )
    result = calculate(stream, RULES)
    assert sum(revenue.order_count for revenue in result.revenue.values()) == 2
    assert {row.order_id for row in result.paid_orders} == {"in time", "too late for revenue"}
    assert (result.late_order_count, result.late_join_count) == (2, 1)


def test_what_is_not_an_object_or_lacks_a_column_is_no_record() -> None:
    whole = order(1, 0).value
    assert decode(ORDERS, whole) is not None
    assert decode(PAYMENTS, whole) is None
    for value in (b"", b"[]", b"3", b"null", whole[:-1], whole.replace(b"101", b'"101"')):
        assert decode(ORDERS, value) is None
