"""The intake of a producer that traces: it begins the trace of records that are to have one.

A record that is not traced, which is nearly every one, still goes the short way: what it costs is
one look at how many are left out. One that is traced goes the long way, and gets its headers there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from headwater.base.errors import KafkaError
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.intake.record_intake import ForShare, RecordIntake, Wait
from headwater.client.producer.intake.send_options import SendOptions
from headwater.client.producer.intake.topic_route import TopicRoute
from headwater.client.producer.record import HeadersLike, ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery
from headwater.client.tracing.producer_trace import ProducerTrace
from headwater.client.tracing.trace_context import current


class TracedIntake(RecordIntake):
    def __init__(
        self,
        trace: ProducerTrace,
        options: SendOptions,
        accumulator: RecordAccumulator,
        routes: Mapping[str, TopicRoute],
        *,
        now_s: Callable[[], float],
        wake: Callable[[], None],
        on_exhausted: Callable[[], None],
    ) -> None:
        super().__init__(
            options, accumulator, routes, now_s=now_s, wake=wake, on_exhausted=on_exhausted
        )
        self._trace = trace
        self._sampler = trace.sampler
        self._left = trace.sampler.left

    def offer(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture | None:
        left = self._left.get(topic)
        if not left or current.get() is not None:
            return None
        future = super().offer(topic, value, key, partition, headers, timestamp_ms, on_delivery)
        if future is not None:
            # Only who takes the record counts it.
            self._left[topic] = left - 1
        return future

    def _steps(
        self, record: ProducerRecord, on_delivery: OnDelivery | None
    ) -> Generator[Wait, None, DeliveryFuture]:
        created_ms = self._wall_ms()
        topic = record.topic
        try:
            self.check(None)
            if topic not in self._routes:
                yield from self._found(topic)
            if self._sampler.share(topic) is None:
                yield ForShare(topic)
            traced = self._trace.begin(record, created_ms)
        except KafkaError as error:
            self._trace.refused(str(topic), error)
            raise
        if traced is None:
            try:
                return (yield from super()._steps(record, on_delivery))
            except KafkaError as error:
                self._trace.refused(topic, error)
                raise
        try:
            return (yield from super()._steps(traced.record, traced.telling(on_delivery)))
        except KafkaError as error:
            traced.failed(error)
            raise
