"""What the pipelines left behind, read as any reader would and put into plain rows.

Tables are read with Arrow and without Spark, topics with the client: so the comparison sees what
other programs see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from headwater.client.consumer.record import ConsumerRecord
from headwater.pipeline.demo.calculation import PaidOrder, Revenue
from headwater.pipeline.demo.comparison import Rejected, RevenueRow
from headwater.pipeline.demo.sending import SentRecord
from headwater.pipeline.lake.lake_table import LakeTable

_ARCHIVE_COLUMNS: Final = ("topic", "partition", "offset", "key", "value")
REASON_HEADER: Final = "headwater.dead-letter.reason"
TOPIC_HEADER: Final = "headwater.dead-letter.topic"


def read_archive(path: Path) -> list[SentRecord]:
    table = LakeTable(path).read_arrow(columns=list(_ARCHIVE_COLUMNS))
    columns = (table.column(name).to_pylist() for name in _ARCHIVE_COLUMNS)
    return [SentRecord(*row) for row in zip(*columns, strict=True)]


def read_revenue(path: Path) -> list[RevenueRow]:
    return sorted(map(_revenue_row, LakeTable(path).read_arrow().to_pylist()))


def read_paid_orders(path: Path) -> list[PaidOrder]:
    return [_paid_order(row) for row in LakeTable(path).read_arrow().to_pylist()]


def revenue_in_topic(records: Iterable[ConsumerRecord]) -> list[RevenueRow]:
    return [_revenue_row(json.loads(record.value)) for record in records]


def rejected_in_topic(records: Iterable[ConsumerRecord]) -> list[Rejected]:
    found = []
    for record in records:
        headers = dict(record.headers)
        found.append(
            Rejected(
                (headers.get(TOPIC_HEADER) or b"").decode(),
                record.value,
                (headers.get(REASON_HEADER) or b"").decode(),
            )
        )
    return found


def _revenue_row(row: dict[str, Any]) -> RevenueRow:
    return RevenueRow(
        _milliseconds(row["window_start"]),
        row["category"],
        Revenue(row["order_count"], row["revenue_cents"]),
    )


def _paid_order(row: dict[str, Any]) -> PaidOrder:
    placed_ms, paid_ms = _milliseconds(row["placed_at"]), _milliseconds(row["paid_at"])
    return PaidOrder(
        row["order_id"],
        row["payment_id"],
        row["category"],
        row["amount_cents"],
        paid_ms,
        paid_ms - placed_ms,
    )


def _milliseconds(moment: datetime | str) -> int:
    """Of a time as Arrow gives it, or as it is in JSON; both know their zone."""
    known = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return round(known.timestamp() * 1000)
