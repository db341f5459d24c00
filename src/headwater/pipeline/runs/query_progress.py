"""How far a query is, from the progress that Spark reports: plain mappings in, records out.

Spark reports each batch once, and keeps the last hundred. Whoever looks now and then sees only the
newest, so rows are summed over all batches since the last look; other figures are the newest's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.pipeline.runs.run_record import QueryRecord

#: The entry of a source's offsets that is no topic begins with it.
_NO_TOPIC = "@"


def advanced(record: QueryRecord, reports: Sequence[Mapping[str, Any]]) -> QueryRecord:
    """The record after these reports, oldest first; those it has seen already are passed over."""
    for report in reports:
        record = _after(record, report)
    return record


def _after(record: QueryRecord, report: Mapping[str, Any]) -> QueryRecord:
    batch_id = _whole(report.get("batchId"))
    is_new = batch_id is not None and (record.batch_id is None or batch_id > record.batch_id)
    row_count = _whole(report.get("numInputRows")) or 0
    durations = report.get("durationMs") or {}
    events = report.get("eventTime") or {}
    return QueryRecord(
        name=record.name,
        is_active=record.is_active,
        batch_id=batch_id if is_new else record.batch_id,
        row_count=record.row_count + (row_count if is_new else 0),
        rows_per_s=_number(report.get("processedRowsPerSecond")) or 0.0,
        batch_ms=_whole(durations.get("triggerExecution")) if is_new else record.batch_ms,
        watermark=_watermark(events.get("watermark")) or record.watermark,
        lag=_lags(report.get("sources") or ()),
        state_row_count=sum(
            _whole(operator.get("numRowsTotal")) or 0
            for operator in report.get("stateOperators") or ()
        ),
        error=record.error,
    )


def _lags(sources: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """Records behind the newest, by the topics of a source."""
    found: dict[str, int | None] = {}
    for position, source in enumerate(sources):
        latest = _offsets(source.get("latestOffset"))
        reached = _offsets(source.get("endOffset"))
        known = reached or latest or {}
        name = ",".join(sorted(known)) or f"source {position + 1}"
        lag = None if latest is None or reached is None else _behind(reached, latest)
        # A source that is read twice, as in a join with itself, has one name.
        before = found.get(name)
        found[name] = lag if before is None or lag is None else max(before, lag)
    return found


def _behind(
    reached: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]]
) -> int:
    return sum(
        max(0, offset - reached.get(topic, {}).get(partition, 0))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def _offsets(value: Any) -> dict[str, dict[str, int]] | None:
    """Offsets by topic and partition, out of JSON text or a mapping; None if it is neither."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return {
            str(topic): {str(partition): int(offset) for partition, offset in partitions.items()}
            for topic, partitions in found.items()
            if not topic.startswith(_NO_TOPIC)
        }
    except (ValueError, TypeError, AttributeError):
        return None


def _watermark(value: Any) -> str | None:
    # Spark begins at 1970 when nothing has come yet.
    return value if isinstance(value, str) and not value.startswith("1970-01-01T00:00:00") else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value == value else None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number == number and abs(number) != float("inf") else None
