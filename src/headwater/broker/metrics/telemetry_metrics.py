"""What clients have pushed of their metrics, and how much of it there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge, labels, summary

_MBEAN: Final = "Kafka: kafka.server:type=client-metrics,name="


def telemetry_metrics(broker: BrokerContext) -> Iterator[str]:
    """The families about clients' metrics, and those metrics; nothing where nobody takes them."""
    telemetry = broker.telemetry
    if telemetry is None:
        return
    for _ in telemetry.forget_expired(broker.clock.monotonic_ms()):
        # Nothing to show yet, but others may want a turn.
        yield ""
    series = telemetry.series
    yield from gauge(
        "headwater_telemetry_instances",
        f"Clients that have asked what to push, or have pushed. {_MBEAN}ClientMetricsInstanceCount",
        [("", len(telemetry.instances))],
    )
    yield from counter(
        "headwater_telemetry_pushes_total",
        "Pushes of metrics that were let through to be read.",
        [("", telemetry.push_count)],
    )
    yield from gauge(
        "headwater_telemetry_series",
        "Series of clients' metrics on this page, see telemetry.series.max.",
        [("", len(series))],
    )
    yield from counter(
        "headwater_telemetry_series_dropped_total",
        "Values that clients pushed and that are not shown: above telemetry.series.max, not asked "
        "for, or with names or labels that are too long.",
        [("", series.dropped_count)],
    )
    forwarder = telemetry.forwarder
    if forwarder is not None:
        yield from counter(
            "headwater_telemetry_forwarded_total",
            "Pushes that were passed on to telemetry.otlp.endpoint, were not taken there, or were "
            "dropped before because too many waited.",
            [
                (labels({"result": "sent"}), forwarder.sent_count),
                (labels({"result": "failed"}), forwarder.failed_count),
                (labels({"result": "dropped"}), forwarder.dropped_count),
            ],
        )
    for name, kind, shown in series.families():
        text = "Pushed by clients."
        if kind.value == "summary":
            yield from summary(name, text, shown)
        else:
            family = counter if kind.value == "counter" else gauge
            yield from family(name, text, ((each.labels, each.value) for each in shown))
