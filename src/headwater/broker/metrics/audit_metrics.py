"""The audit in figures: what was published, what is not yet, how often that failed."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge


def audit_metrics(broker: BrokerContext) -> Iterator[str]:
    """The families about the audit."""
    publisher = broker.audit_publisher
    yield from counter(
        "headwater_audit_rows_published_total",
        "Rows that this broker has written to __audit.",
        [("", publisher.published_rows)],
    )
    yield from counter(
        "headwater_audit_records_counted_total",
        "Records that were counted for the audit and published.",
        [("", publisher.published_records)],
    )
    yield from gauge(
        "headwater_audit_behind_offsets",
        "Offsets of partitions led here that the audit has not published yet.",
        [("", publisher.behind_offsets)],
    )
    yield from counter(
        "headwater_audit_failures_total",
        "Rounds in which not all could be published; it is tried again.",
        [("", publisher.failed_rounds)],
    )
