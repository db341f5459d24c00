"""A broker's metrics as `headwater metrics --json` prints them."""

from __future__ import annotations

import math

from headwater.cli.metrics.table import Readings, figures, largest_topics, requests


def broker_document(broker_id: str, address: str, readings: Readings) -> dict[str, object]:
    """What the tables show of a broker, with all its topics, and numbers as they are."""
    return {
        "broker_id": int(broker_id) if broker_id.isdecimal() else None,
        "metrics_address": address,
        "seconds": readings.seconds,
        "figures": [
            {
                "name": figure.title,
                "metric": figure.metric,
                "value": _number(value),
                "per_second": _number(rate),
                "bad": figure.is_bad(value),
            }
            for figure, value, rate in figures(readings)
        ],
        "requests": [
            {
                "api": row.api,
                "count": _number(row.request_count),
                "per_second": _number(row.per_second),
                "mean_ms": _number(row.mean_s * 1000),
                "p50_ms": _number(row.p50_s * 1000),
                "p99_ms": _number(row.p99_s * 1000),
                "errors": _number(row.error_count),
            }
            for row in requests(readings)
        ],
        "topics": [
            {
                "topic": row.topic,
                "bytes_in": _number(row.bytes_in),
                "bytes_out": _number(row.bytes_out),
                "records_in": _number(row.records_in),
                "log_size_bytes": _number(row.log_size_bytes),
            }
            for row in largest_topics(readings.now)
        ],
    }


def _number(value: float | None) -> float | int | None:
    """As JSON has it: whole numbers without a point, and null for what is not a number."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value
