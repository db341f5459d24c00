"""What a producer counts and measures, under the names that Kafka's client gives it.

Counted per batch and per request, never per record, on the loop that sends. Rates, averages and
maxima are over the last 30 to 60 seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import truediv
from typing import Final

from headwater.client.metric_samples import Samples
from headwater.client.producer.batches.batch import ProduceBatch

_RATES: Final = (
    "record-send",
    "byte",
    "record-error",
    "record-retry",
    "batch-split",
    "buffer-exhausted",
    "request",
    "response",
)
_AVERAGES: Final = ("compression-rate", "records-per-request")
_AVERAGES_AND_MAXIMA: Final = (
    "batch-size",
    "record-size",
    "record-queue-time",
    "request-latency",
    "produce-throttle-time",
)


class ProducerMetrics:
    def __init__(self, now_s: float) -> None:
        names = (*_RATES, *_AVERAGES, *_AVERAGES_AND_MAXIMA)
        self._samples = {name: Samples(now_s) for name in names}
        self._times_ns: defaultdict[str, float] = defaultdict(float)
        self._gauges: dict[str, Callable[[], float]] = {}

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Have a value read whenever metrics are asked for."""
        self._gauges[name] = read

    def requested(self, batches: Sequence[ProduceBatch], now_s: float) -> None:
        """A request leaves, with batches that leave for the first time or again."""
        samples = self._samples
        record_counts = [batch.record_count for batch in batches]
        samples["request"].record(1, now_s)
        samples["records-per-request"].record(sum(record_counts), now_s)
        new = [
            (record_count, batch.size_bytes, batch.data.size_bytes, now_s - batch.opened_s)
            for batch, record_count in zip(batches, record_counts, strict=True)
            if batch.attempt_count == 1 and batch.data is not None
        ]
        if not new:
            return
        counts, sizes, sent_sizes, times_s = zip(*new, strict=True)
        samples["record-send"].record_all(counts, now_s)
        samples["byte"].record_all(sent_sizes, now_s)
        samples["batch-size"].record_all(sent_sizes, now_s)
        samples["record-size"].record_all(tuple(map(truediv, sizes, counts)), now_s)
        samples["compression-rate"].record_all(tuple(map(truediv, sent_sizes, sizes)), now_s)
        samples["record-queue-time"].record_all([each * 1000 for each in times_s], now_s)

    def answered(self, latency_s: float, throttle_ms: int, now_s: float) -> None:
        self._samples["response"].record(1, now_s)
        self._samples["request-latency"].record(latency_s * 1000, now_s)
        self._samples["produce-throttle-time"].record(throttle_ms, now_s)

    def retried(self, batch: ProduceBatch, now_s: float) -> None:
        self._samples["record-retry"].record(batch.record_count, now_s)

    def failed(self, batch: ProduceBatch, now_s: float) -> None:
        self._samples["record-error"].record(batch.record_count, now_s)

    def was_split(self, now_s: float) -> None:
        self._samples["batch-split"].record(1, now_s)

    def buffer_exhausted(self, now_s: float) -> None:
        """A record was refused, or dropped, because the memory is used up."""
        self._samples["buffer-exhausted"].record(1, now_s)

    def add_time(self, name: str, duration_s: float) -> None:
        """Time spent in an operation, for a total in nanoseconds."""
        self._times_ns[name] += duration_s * 1e9

    def figures(self, now_s: float) -> dict[str, float]:
        """All metrics by name; not a number where nothing was measured."""
        figures: dict[str, float] = dict(self._times_ns)
        for name in _RATES:
            figures[f"{name}-total"] = self._samples[name].total
            figures[f"{name}-rate"] = self._samples[name].rate(now_s)
        for name in (*_AVERAGES, *_AVERAGES_AND_MAXIMA):
            figures[f"{name}-avg"] = self._samples[name].average(now_s)
        for name in _AVERAGES_AND_MAXIMA:
            figures[f"{name}-max"] = self._samples[name].largest(now_s)
        for name, read in self._gauges.items():
            figures[name] = float(read())
        return figures
