import math

import pytest

from headwater.base.ids import TopicPartition
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.intake.serialized_record import SerializedRecord
from headwater.client.producer.metrics import ProducerMetrics
from headwater.wire.records import Compression

#: Of Kafka's `producer-metrics`, those that are counted here.
KAFKAS_NAMES = {
    "batch-size-avg",
    "batch-size-max",
    "batch-split-rate",
    "batch-split-total",
    "buffer-exhausted-rate",
    "buffer-exhausted-total",
    "byte-rate",
    "byte-total",
    "compression-rate-avg",
    "produce-throttle-time-avg",
    "produce-throttle-time-max",
    "record-error-rate",
    "record-error-total",
    "record-queue-time-avg",
    "record-queue-time-max",
    "record-retry-rate",
    "record-retry-total",
    "record-send-rate",
    "record-send-total",
    "record-size-avg",
    "record-size-max",
    "records-per-request-avg",
    "request-latency-avg",
    "request-latency-max",
    "request-rate",
    "request-total",
    "response-rate",
    "response-total",
}


def encoded_batch(compression: Compression) -> ProduceBatch:
    batch = ProduceBatch(TopicPartition("orders", 0), 100.0)
    for _ in range(10):
        batch.add(SerializedRecord(5, None, b"x" * 100, (), 112))
    batch.encode(compression, None, is_transactional=False)
    batch.attempt_count = 1
    return batch


def test_the_names_are_kafkas() -> None:
    figures = ProducerMetrics(100.0).figures(101.0)
    assert set(figures) >= KAFKAS_NAMES
    assert figures["record-send-total"] == 0
    assert math.isnan(figures["request-latency-avg"])


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_a_batch_is_counted_when_it_first_leaves(compression: Compression) -> None:
    metrics = ProducerMetrics(100.0)
    batch = encoded_batch(compression)
    metrics.requested([batch], 100.25)
    batch.attempt_count = 2
    metrics.requested([batch], 101.0)
    figures = metrics.figures(110.0)
    assert batch.data is not None
    assert figures["record-send-total"] == 10
    assert figures["record-send-rate"] == 1.0
    assert figures["byte-total"] == figures["batch-size-avg"] == batch.data.size_bytes
    assert figures["record-queue-time-max"] == 250
    if compression is Compression.NONE:
        assert figures["compression-rate-avg"] == 1.0
    else:
        assert figures["compression-rate-avg"] < 0.5


def test_requests_and_failures_are_counted() -> None:
    metrics = ProducerMetrics(100.0)
    batch = encoded_batch(Compression.NONE)
    metrics.requested([batch], 100.0)
    metrics.answered(0.2, 30, 100.2)
    metrics.requested([batch, encoded_batch(Compression.NONE)], 101.0)
    metrics.retried(batch, 101.0)
    metrics.failed(batch, 102.0)
    metrics.gauge("requests-in-flight", lambda: 3)
    metrics.add_time("flush-time-ns-total", 1.5)
    figures = metrics.figures(110.0)
    assert figures["request-total"] == 2
    assert figures["response-total"] == 1
    assert figures["records-per-request-avg"] == 15
    assert figures["request-latency-max"] == pytest.approx(200)
    assert figures["produce-throttle-time-avg"] == 30
    assert figures["record-retry-total"] == figures["record-error-total"] == 10
    assert figures["requests-in-flight"] == 3
    assert figures["flush-time-ns-total"] == 1.5e9
