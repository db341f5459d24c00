"""What the pipelines must come to, calculated in plain Python from the records as they were sent.

Independent of Spark and of the pipelines on purpose: values are read with `json`, windows are
integer division, the join is a dictionary. It rests on three rules of the pipelines: a record that
does not fit the schema is rejected, of records with one id the first counts, and what is older than
the watermark when it comes is left out. The watermark stands, when the second wave comes, where the
newest record of the first has put it; in a join, where the slower side has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from headwater.pipeline.demo.shop import ORDERS, PAYMENTS, ShopRecord, ShopStream

#: The columns that a record must have, by topic, and their types in JSON.
_COLUMNS: Final[dict[str, dict[str, type]]] = {
    ORDERS: {
        "order_id": str,
        "customer_id": str,
        "category": str,
        "quantity": int,
        "amount_cents": int,
        "placed_at": str,
    },
    PAYMENTS: {
        "payment_id": str,
        "order_id": str,
        "method": str,
        "paid_cents": int,
        "paid_at": str,
    },
}


class Rules(NamedTuple):
    """The variables of the pipelines that the result depends on."""

    window_ms: int
    lateness_ms: int
    payment_within_ms: int


class Revenue(NamedTuple):
    order_count: int
    cents: int


class Order(NamedTuple):
    order_id: str
    category: str
    amount_cents: int
    placed_ms: int


class Payment(NamedTuple):
    payment_id: str
    order_id: str
    paid_cents: int
    paid_ms: int


class PaidOrder(NamedTuple):
    """A row of the join."""

    order_id: str
    payment_id: str
    category: str
    amount_cents: int
    paid_ms: int
    took_ms: int


@dataclass(frozen=True, slots=True)
class Expected:
    """All results: `revenue` by the window's start and the category, `rejected` by topic."""

    revenue: dict[tuple[int, str], Revenue]
    #: Of these, what no order can change any more: the watermark is past the window's end.
    closed_revenue: dict[tuple[int, str], Revenue]
    paid_orders: frozenset[PaidOrder]
    rejected: dict[str, list[bytes]]
    #: What came too late for the revenue, and too late for the join.
    late_order_count: int
    late_join_count: int
    second_time_count: int


def calculate(stream: ShopStream, rules: Rules) -> Expected:
    """The results of all pipelines over a stream that came in its two waves."""
    waves = [_Wave.read(stream.first_wave), _Wave.read(stream.second_wave)]
    first, second = waves
    orders_watermark_ms = max(order.placed_ms for order in first.orders) - rules.lateness_ms
    payments_watermark_ms = max(payment.paid_ms for payment in first.payments) - rules.lateness_ms
    join_watermark_ms = min(orders_watermark_ms, payments_watermark_ms)

    in_time = first.orders + [o for o in second.orders if o.placed_ms >= orders_watermark_ms]
    orders = {order.order_id: order for order in reversed(in_time)}

    joinable = first.orders + [o for o in second.orders if o.placed_ms >= join_watermark_ms]
    payments = first.payments + [p for p in second.payments if p.paid_ms >= join_watermark_ms]
    late_count = len(second.orders) + len(second.payments)
    late_count -= len(joinable) + len(payments) - len(first.orders) - len(first.payments)

    revenue = _revenue(orders.values(), rules.window_ms)
    last_watermark_ms = max(order.placed_ms for order in in_time) - rules.lateness_ms
    return Expected(
        revenue=revenue,
        closed_revenue={
            (start_ms, category): total
            for (start_ms, category), total in revenue.items()
            if start_ms + rules.window_ms <= last_watermark_ms
        },
        paid_orders=frozenset(
            _joined(
                {order.order_id: order for order in reversed(joinable)},
                {payment.payment_id: payment for payment in reversed(payments)}.values(),
                rules.payment_within_ms,
            )
        ),
        rejected={
            topic: [*first.rejected[topic], *second.rejected[topic]] for topic in (ORDERS, PAYMENTS)
        },
        late_order_count=len(first.orders) + len(second.orders) - len(in_time),
        late_join_count=late_count,
        second_time_count=len(in_time) - len(orders),
    )


@dataclass(slots=True)
class _Wave:
    orders: list[Order]
    payments: list[Payment]
    rejected: dict[str, list[bytes]]

    @classmethod
    def read(cls, records: Iterable[ShopRecord]) -> _Wave:
        wave = cls([], [], {ORDERS: [], PAYMENTS: []})
        for record in records:
            content = decode(record.topic, record.value)
            if content is None:
                wave.rejected[record.topic].append(record.value)
            elif record.topic == ORDERS:
                wave.orders.append(_order(content))
            else:
                wave.payments.append(_payment(content))
        return wave


def decode(topic: str, value: bytes) -> dict[str, object] | None:
    """A record's content, or None if it is not one of the shop's."""
    try:
        content = json.loads(value.decode())
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    columns = _COLUMNS[topic]
    if any(not isinstance(content.get(name), kind) for name, kind in columns.items()):
        return None
    return content


def _order(content: dict[str, object]) -> Order:
    return Order(
        str(content["order_id"]),
        str(content["category"]),
        int(str(content["amount_cents"])),
        _milliseconds(str(content["placed_at"])),
    )


def _payment(content: dict[str, object]) -> Payment:
    return Payment(
        str(content["payment_id"]),
        str(content["order_id"]),
        int(str(content["paid_cents"])),
        _milliseconds(str(content["paid_at"])),
    )


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _revenue(orders: Iterable[Order], window_ms: int) -> dict[tuple[int, str], Revenue]:
    totals: dict[tuple[int, str], Revenue] = {}
    for order in orders:
        window = (order.placed_ms // window_ms * window_ms, order.category)
        count, cents = totals.get(window, Revenue(0, 0))
        totals[window] = Revenue(count + 1, cents + order.amount_cents)
    return totals


def _joined(
    orders: dict[str, Order], payments: Iterable[Payment], within_ms: int
) -> Iterable[PaidOrder]:
    for payment in payments:
        order = orders.get(payment.order_id)
        if order is None:
            continue
        took_ms = payment.paid_ms - order.placed_ms
        if 0 <= took_ms <= within_ms:
            yield PaidOrder(
                order.order_id,
                payment.payment_id,
                order.category,
                order.amount_cents,
                payment.paid_ms,
                took_ms,
            )
