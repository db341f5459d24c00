"""Rows of tables and records of topics become the same plain rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from headwater.client.consumer.record import ConsumerRecord
from headwater.pipeline.demo.calculation import Revenue
from headwater.pipeline.demo.comparison import Rejected, RevenueRow
from headwater.pipeline.demo.results import (
    rejected_in_topic,
    revenue_in_topic,
)
from headwater.wire.records.timestamp_type import TimestampType

NINE_MS = int(datetime(2026, 3, 2, 9, tzinfo=UTC).timestamp() * 1000)


def consumed(value: object, *headers: tuple[str, bytes]) -> ConsumerRecord:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ConsumerRecord(
        "topic", 0, 0, 0, TimestampType.CREATE_TIME, None, data, tuple(headers), -1
    )


def revenue(start: str, category: str, count: int, cents: int) -> ConsumerRecord:
    return consumed(
        {
            "window_start": start,
            "window_end": start,
            "category": category,
            "order_count": count,
            "revenue_cents": cents,
        }
    )


def test_windows_are_kept_as_often_as_they_are_there() -> None:
    records = [
        revenue("2026-03-02T09:01:00.000Z", "books", 1, 10),
        revenue("2026-03-02T09:00:00.000Z", "books", 1, 5),
        revenue("2026-03-02T09:01:00.000Z", "books", 1, 10),
    ]
    later = RevenueRow(NINE_MS + 60_000, "books", Revenue(1, 10))
    assert revenue_in_topic(records) == [later, RevenueRow(NINE_MS, "books", Revenue(1, 5)), later]


def test_dead_letters_tell_where_from_and_why() -> None:
    told = consumed(
        b"\xff",
        ("mine", b"1"),
        ("headwater.dead-letter.reason", b"it is no JSON"),
        ("headwater.dead-letter.topic", b"orders"),
    )
    assert rejected_in_topic([told, consumed(b"x")]) == [
        Rejected("orders", b"\xff", "it is no JSON"),
        Rejected("", b"x", ""),
    ]
