"""How far a query is, from the progress that Spark reports: plain mappings in, records out.

Spark reports each batch once, when it is committed, and keeps the last hundred reports. Whoever
looks now and then sees only the newest, so rows are summed over all batches since the last look;
other figures are the newest's. A query without new data reports too, with the number of the batch
that it will make next.

What was read and rejected is what Spark observed at the sources (`SOURCE_METRICS`); without that,
what its scans count. Rows written are the sink's own number where Spark knows it, and otherwise
come from whoever wrote the batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, TypeAlias

from headwater.pipeline.compiled.row_counts import READ, REJECTED, SOURCE_METRICS
from headwater.pipeline.runs.run_record import QueryRecord, RowCounts, SourceRows

#: How many rows were written, of a query by its id and of a batch by its number.
RowsOfBatch: TypeAlias = Callable[[str, int], int]

#: The entry of a source's offsets that is no topic begins with it.
_NO_TOPIC = "@"


def advanced(
    record: QueryRecord,
    reports: Sequence[Mapping[str, Any]],
    written: RowsOfBatch = lambda query, batch: 0,
) -> QueryRecord:
    """The record after these reports, oldest first; those it has seen already are passed over."""
    for report in reports:
        record = _after(record, report, written)
    return record


def _after(record: QueryRecord, report: Mapping[str, Any], written: RowsOfBatch) -> QueryRecord:
    durations = report.get("durationMs") or {}
    batch_id = _whole(report.get("batchId"))
    if batch_id is not None and "addBatch" in durations and _is_new(record, batch_id):
        record = _with_batch(record, report, batch_id, written)
    events = report.get("eventTime") or {}
    return replace(
        record,
        rows_per_s=_number(report.get("processedRowsPerSecond")) or 0.0,
        watermark=_watermark(events.get("watermark")) or record.watermark,
        lag=_lags(report.get("sources") or ()),
        state_row_count=sum(
            _whole(operator.get("numRowsTotal")) or 0
            for operator in report.get("stateOperators") or ()
        ),
    )


def _is_new(record: QueryRecord, batch_id: int) -> bool:
    return record.batch_id is None or batch_id > record.batch_id


def _with_batch(
    record: QueryRecord, report: Mapping[str, Any], batch_id: int, written: RowsOfBatch
) -> QueryRecord:
    """The record with one more batch."""
    batch = _source_rows(report)
    output = _whole((report.get("sink") or {}).get("numOutputRows"))
    if output is None or output < 0:
        # Spark does not know.
        output = written(str(report.get("id")), batch_id)
    rows = RowCounts(
        read=sum(each.read for each in batch.values()),
        written=output,
        rejected=sum(each.rejected for each in batch.values()),
    )
    sources = dict(record.sources)
    for name, each in batch.items():
        before = sources.get(name, SourceRows())
        sources[name] = SourceRows(before.read + each.read, before.rejected + each.rejected)
    return replace(
        record,
        is_planned=True,
        batch_id=batch_id,
        batch_ms=_whole((report.get("durationMs") or {}).get("triggerExecution")),
        rows=record.rows + rows,
        batch_rows=rows,
        sources=sources,
    )


def _source_rows(report: Mapping[str, Any]) -> dict[str, SourceRows]:
    """What a batch read, by the names of sources."""
    found = {
        name.removeprefix(SOURCE_METRICS): SourceRows(
            _whole(metrics[READ]) or 0, _whole(metrics[REJECTED]) or 0
        )
        for name, metrics in (report.get("observedMetrics") or {}).items()
        if name.startswith(SOURCE_METRICS)
    }
    return found or {"": SourceRows(_whole(report.get("numInputRows")) or 0)}


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
    except (ValueError, TypeError, AttributeError, OverflowError):
        return None


def _watermark(value: Any) -> str | None:
    # Spark begins at 1970 when nothing has come yet.
    return value if isinstance(value, str) and not value.startswith("1970-01-01T00:00:00") else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and isfinite(value) else None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number == number and abs(number) != float("inf") else None
