"""A web shop's morning as records: orders, their payments, and what goes wrong on the way.

Everything comes from a seed, so that a run can be repeated, and happens in the shop's own time,
which begins at `OPENING`: how fast it is sent is another matter. There are two waves. The first is
the shop's ordinary half hour: some records come minutes late, some come twice, some are not records
of the shop at all. The second follows after a break, and in it come orders of long ago too, so old
that a watermark has passed them.

How late is promised, because a check of Spark's results rests on it: what comes late in either wave
is at most `LATENESS_MS_MAX` behind the newest that was sent before it, and what comes too late is
at least `TOO_LATE_MS_MIN` behind the newest of the whole first wave.
"""

from __future__ import annotations

import enum
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from headwater.pipeline.demo.rejects import reject

OPENING: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OPENING_MS: Final = int(OPENING.timestamp() * 1000)

ORDERS: Final = "orders"
PAYMENTS: Final = "payments"

MINUTE_MS: Final = 60_000
#: The first wave ends and the second begins.
BREAK_MS: Final = 30 * MINUTE_MS
CLOSING_MS: Final = 40 * MINUTE_MS

LATENESS_MS_MAX: Final = 4 * MINUTE_MS
TOO_LATE_MS_MIN: Final = 15 * MINUTE_MS
#: When orders were placed that come too late: at the latest so.
_TOO_LATE_PLACED_MS_MAX: Final = 12 * MINUTE_MS

_LATE_SHARE: Final = 0.02
_TOO_LATE_SHARE: Final = 0.015
_TWICE_SHARE: Final = 0.015
_REJECT_SHARE: Final = 0.004
_UNKNOWN_ORDER_SHARE: Final = 0.003
_UNPAID_SHARE: Final = 0.06
_SLOW_PAYER_SHARE: Final = 0.02


class Category(NamedTuple):
    """What the shop sells: how often it is bought, and for how much."""

    name: str
    weight: float
    cents_min: int
    cents_max: int


CATEGORIES: Final = (
    Category("books", 30, 799, 3_499),
    Category("games", 14, 1_999, 6_999),
    Category("garden", 10, 499, 14_999),
    Category("kitchen", 18, 999, 19_999),
    Category("music", 16, 599, 4_999),
    Category("tools", 12, 1_299, 24_999),
)
#: For some minutes everybody wants games.
_SALE_CATEGORY: Final = "games"
_SALE_MS: Final = range(17 * MINUTE_MS, 22 * MINUTE_MS)
_SALE_FACTOR: Final = 6.0


class Kind(enum.Enum):
    """Why a record is in the stream."""

    ORDINARY = "ordinary"
    LATE = "late"
    TOO_LATE = "too late"
    TWICE = "a second time"
    REJECT = "malformed"


@dataclass(frozen=True, slots=True, order=True)
class ShopRecord:
    """One record as it is sent; `sent_ms` is the shop's time, since it opened."""

    sent_ms: int
    number: int
    topic: str = field(compare=False)
    key: bytes = field(compare=False)
    value: bytes = field(compare=False)
    kind: Kind = field(compare=False)


@dataclass(frozen=True, slots=True)
class ShopStream:
    """All that the shop sends, in the order in which it does."""

    seed: int
    first_wave: tuple[ShopRecord, ...]
    second_wave: tuple[ShopRecord, ...]

    @property
    def records(self) -> Iterator[ShopRecord]:
        yield from self.first_wave
        yield from self.second_wave


def make_stream(seed: int, order_count: int) -> ShopStream:
    """The stream of a seed, with about `order_count` orders and nearly as many payments."""
    records = sorted(_Morning(random.Random(seed), order_count).records())
    return ShopStream(
        seed,
        tuple(record for record in records if record.sent_ms < BREAK_MS),
        tuple(record for record in records if record.sent_ms >= BREAK_MS),
    )


class _Morning:
    """Draws one stream; every draw comes from one generator, in a fixed order."""

    def __init__(self, draw: random.Random, order_count: int) -> None:
        self._draw = draw
        self._order_count = order_count
        self._number = 0

    def records(self) -> Iterator[ShopRecord]:
        for number, placed_ms in enumerate(self._times(self._order_count)):
            order_id = f"o-{number:06d}"
            cents, order = self._order(order_id, placed_ms)
            yield from self._sent(ORDERS, order_id, order, placed_ms, may_be_too_late=True)
            yield from self._payment(number, order_id, cents, placed_ms)
        for number in range(math.ceil(self._order_count * 2 * _REJECT_SHARE)):
            topic = ORDERS if number % 2 == 0 else PAYMENTS
            key, value = reject(number // 2, topic)
            sent_ms = self._draw.randrange(CLOSING_MS)
            yield self._record(sent_ms, topic, key, value, Kind.REJECT)

    def _times(self, count: int) -> list[int]:
        """When orders are placed: business swings gently, and rises while there is a sale."""
        seconds = range(CLOSING_MS // 1000)
        weights = [
            (1.0 + 0.35 * math.sin(second / 260)) * (1.8 if second * 1000 in _SALE_MS else 1.0)
            for second in seconds
        ]
        chosen = self._draw.choices(seconds, weights, k=count)
        return sorted(second * 1000 + self._draw.randrange(1000) for second in chosen)

    def _order(self, order_id: str, placed_ms: int) -> tuple[int, dict[str, object]]:
        on_sale = placed_ms in _SALE_MS
        weights = [
            category.weight * (_SALE_FACTOR if on_sale and category.name == _SALE_CATEGORY else 1.0)
            for category in CATEGORIES
        ]
        category = self._draw.choices(CATEGORIES, weights)[0]
        quantity = min(1 + int(self._draw.expovariate(1.3)), 6)
        cents = quantity * self._draw.randint(category.cents_min, category.cents_max)
        return cents, {
            "order_id": order_id,
            # A few customers order often, most of them once.
            "customer_id": f"c-{int(1500 * self._draw.random() ** 2.5):04d}",
            "category": category.name,
            "quantity": quantity,
            "amount_cents": cents,
            "placed_at": shop_time(placed_ms),
        }

    def _payment(
        self, number: int, order_id: str, cents: int, placed_ms: int
    ) -> Iterator[ShopRecord]:
        if self._draw.random() < _UNPAID_SHARE:
            return
        if self._draw.random() < _SLOW_PAYER_SHARE:
            took_ms = self._draw.randrange(16 * MINUTE_MS, 20 * MINUTE_MS)
        else:
            took_ms = min(int(1000 * self._draw.lognormvariate(math.log(40), 0.9)), 14 * MINUTE_MS)
        paid_ms = placed_ms + took_ms
        if paid_ms >= CLOSING_MS:
            return
        if self._draw.random() < _UNKNOWN_ORDER_SHARE:
            order_id = f"x-{number:06d}"
        payment: dict[str, object] = {
            "payment_id": f"p-{number:06d}",
            "order_id": order_id,
            "method": self._draw.choices(("card", "wallet", "transfer"), (60, 30, 10))[0],
            "paid_cents": cents,
            "paid_at": shop_time(paid_ms),
        }
        yield from self._sent(PAYMENTS, order_id, payment, paid_ms, may_be_too_late=False)

    def _sent(
        self,
        topic: str,
        order_id: str,
        content: dict[str, object],
        happened_ms: int,
        *,
        may_be_too_late: bool,
    ) -> Iterator[ShopRecord]:
        """An event as one record, or two, on its way for a moment, or for minutes."""
        key, value = order_id.encode(), json.dumps(content, separators=(",", ":")).encode()
        kind = Kind.ORDINARY
        took_ms = int(self._draw.expovariate(1 / 800))
        chance = self._draw.random()
        if may_be_too_late and chance < _TOO_LATE_SHARE and happened_ms < _TOO_LATE_PLACED_MS_MAX:
            kind = Kind.TOO_LATE
            took_ms = self._draw.randrange(BREAK_MS, CLOSING_MS) - happened_ms
        elif chance < _TOO_LATE_SHARE + _LATE_SHARE:
            kind = Kind.LATE
            took_ms = self._draw.randrange(MINUTE_MS, LATENESS_MS_MAX - 30_000)
        sent_ms = happened_ms + took_ms
        yield self._record(sent_ms, topic, key, value, kind)
        if kind is not Kind.TOO_LATE and self._draw.random() < _TWICE_SHARE:
            sent_ms += self._draw.randrange(500, 20_000)
            yield self._record(sent_ms, topic, key, value, Kind.TWICE)

    def _record(self, sent_ms: int, topic: str, key: bytes, value: bytes, kind: Kind) -> ShopRecord:
        self._number += 1
        return ShopRecord(sent_ms, self._number, topic, key, value, kind)


def shop_time(since_opening_ms: int) -> str:
    """A time of the shop as its records write it."""
    moment = datetime.fromtimestamp((OPENING_MS + since_opening_ms) / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{since_opening_ms % 1000:03d}Z"
