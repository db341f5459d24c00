"""The metrics of a producer that traces: what they hear of batches, the trace hears too."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.metrics import ProducerMetrics
from headwater.client.tracing.producer_trace import ProducerTrace


class TracedMetrics(ProducerMetrics):
    def __init__(self, now_s: float, trace: ProducerTrace) -> None:
        super().__init__(now_s)
        self._trace = trace

    def requested(self, batches: Sequence[ProduceBatch], now_s: float) -> None:
        super().requested(batches, now_s)
        self._trace.requested(batches)

    def failed(self, batch: ProduceBatch, now_s: float) -> None:
        super().failed(batch, now_s)
        self._trace.is_failing(batch)

    def figures(self, now_s: float) -> dict[str, float]:
        return {**super().figures(now_s), **self._trace.tracer.metrics()}
