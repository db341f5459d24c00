"""What a producer tells of its records: created, sent, retried, acknowledged or failed.

A record is traced if it carries a sampled `traceparent`, if it is sent while a traced one is
handled, or if the topic's share says so; then it gets a `traceparent`, by which consumers know.
What becomes of it is told by its own delivery callback. That a request with it has left is seen in
the headers of batches, so nothing else has to be remembered, and a batch without headers costs one
look. Of records that are not traced only failures are told: of a batch, in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.record import ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.client.tracing.sampling import Sampler
from headwater.client.tracing.trace_context import (
    TraceContext,
    context_of,
    current,
    sampled_context_of,
)
from headwater.client.tracing.trace_step import (
    ACKNOWLEDGED,
    CREATED,
    FAILED,
    RETRIED,
    SENT,
    Detail,
    TraceLink,
    TraceStep,
)
from headwater.client.tracing.tracer import Tracer, error_text


class TracedSend(NamedTuple):
    """A record that is traced, as it is sent, and what is told of it."""

    trace: ProducerTrace
    record: ProducerRecord
    context: TraceContext
    created_ms: int
    details: Mapping[str, Detail]

    def telling(self, on_delivery: OnDelivery | None) -> OnDelivery:
        """A callback that tells what became of it, and then calls the user's."""

        def tell(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if metadata is not None:
                self.acknowledged(metadata)
            elif error is not None:
                self.failed(error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return tell

    def acknowledged(self, metadata: RecordMetadata) -> None:
        # With acks=0 nobody knows the offset.
        place = None if metadata.offset < 0 else str(metadata.message_id)
        links = [] if place is None else [TraceLink(place, self.context.trace_id)]
        self._write(self._step(ACKNOWLEDGED, message_id=place), links)

    def failed(self, error: BaseException) -> None:
        self._write(self._step(FAILED, error=error_text(error)))

    def _step(
        self, step: str, *, message_id: str | None = None, error: str | None = None
    ) -> TraceStep:
        return self.trace.tracer.step(
            self.context.trace_id,
            step,
            topic=self.record.topic,
            message_id=message_id,
            error=error,
            details={**self.details, "created_ms": self.created_ms},
        )

    def _write(self, step: TraceStep, links: Sequence[TraceLink] = ()) -> None:
        self.trace.tracer.write([step], links)


class ProducerTrace:
    """`begin` and `refused` are called by whoever sends, the rest on the loop."""

    def __init__(self, tracer: Tracer, sampler: Sampler) -> None:
        self.tracer = tracer
        self.sampler = sampler

    def begin(self, record: ProducerRecord, created_ms: int) -> TracedSend | None:
        """What is to be sent instead, if the record is traced."""
        given = _given_headers(record)
        if given is None:
            # The producer has a sentence for such headers.
            return None
        tracer = self.tracer
        context = context_of(given)
        if context is not None:
            # Whoever made it has decided; its header stays, since it names a span of theirs.
            if not context.is_sampled:
                return None
            details = {"span_id": tracer.new_span_id(), "parent_span_id": context.span_id}
        else:
            span_id = tracer.new_span_id()
            details = {"span_id": span_id}
            handled = current.get()
            if handled is not None:
                context = handled.child(span_id)
                details["parent_span_id"] = handled.span_id
            elif self.sampler.take(record.topic):
                context = TraceContext(tracer.new_trace_id(), span_id)
            else:
                return None
            given = [*given, *context.headers()]
        step = tracer.step(
            context.trace_id, CREATED, time_ms=created_ms, topic=record.topic, details=details
        )
        tracer.write([step])
        return TracedSend(self, record._replace(headers=given), context, created_ms, details)

    def refused(self, topic: str, error: BaseException) -> None:
        """A record that is not traced was not even taken."""
        self._write_failure(topic, error, {"records": 1})

    # -- on the loop -----------------------------------------------------------------------------

    def requested(self, batches: Iterable[ProduceBatch]) -> None:
        """A request with these leaves."""
        for batch in batches:
            contexts = _contexts(batch)
            if not contexts:
                continue
            topic, partition = batch.topic_partition
            is_first = batch.attempt_count <= 1
            details: dict[str, Detail] = {"partition": partition, "records": batch.record_count}
            if batch.last_failure is not None:
                details["cause"] = error_text(batch.last_failure)
            now_ms = self.tracer.wall_ms()
            self.tracer.write(
                [
                    self.tracer.step(
                        context.trace_id,
                        SENT if is_first else RETRIED,
                        time_ms=now_ms,
                        topic=topic,
                        attempt=max(1, batch.attempt_count),
                        details={**details, "span_id": context.span_id},
                    )
                    for context in contexts
                ]
            )

    def is_failing(self, batch: ProduceBatch) -> None:
        """It is about to fail, and will know why."""
        untraced_count = batch.record_count - len(_contexts(batch))
        if untraced_count:
            batch.when_done(lambda failed: self._batch_failed(failed, untraced_count))

    def _batch_failed(self, batch: ProduceBatch, untraced_count: int) -> None:
        if batch.error is not None:
            topic, partition = batch.topic_partition
            details: dict[str, Detail] = {"partition": partition, "records": untraced_count}
            self._write_failure(topic, batch.error, details)

    def _write_failure(
        self, topic: str, error: BaseException, details: Mapping[str, Detail]
    ) -> None:
        tracer = self.tracer
        step = tracer.step(
            tracer.new_trace_id(),
            FAILED,
            topic=topic,
            error=error_text(error),
            details={**details, "span_id": tracer.new_span_id()},
        )
        tracer.write([step])


def _given_headers(record: ProducerRecord) -> Sequence[tuple[str, bytes | str | None]] | None:
    """The headers as pairs; None if they are none."""
    headers = record.headers
    if not headers:
        return ()
    if isinstance(headers, Mapping):
        return tuple(headers.items())
    if isinstance(headers, str | bytes) or not isinstance(headers, Iterable):
        return None
    pairs = tuple(headers)
    return (
        pairs if all(isinstance(each, tuple | list) and len(each) == 2 for each in pairs) else None
    )


def _contexts(batch: ProduceBatch) -> list[TraceContext]:
    """The traces of a batch's records."""
    return [
        context
        for headers in batch.headers or ()
        if headers and (context := sampled_context_of(headers)) is not None
    ]
