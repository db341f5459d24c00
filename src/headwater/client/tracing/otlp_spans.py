"""Steps as spans of OpenTelemetry, by its conventions for messaging, exported by the official SDK.

    acknowledged, failed   send T      PRODUCER, from the step `created` on
    fetched                poll T      CLIENT, one for all of a topic that a poll returned
    handled                process T   CONSUMER
    committed              commit T    CLIENT, one for all of a topic that a commit covers

Ids of spans are those in the steps, so a record's `traceparent` names the span that sent it. Spans
of consumers are linked to it and have traces of their own, as the conventions have it; a handler's
may be its child instead. The SDK has the queue, the thread and the retries. It comes with the extra
`otel`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headwater.base.extras import missing_package
from headwater.base.message_id import MessageId
from headwater.base.settings import SettingError
from headwater.client.tracing.trace_step import (
    ACKNOWLEDGED,
    COMMITTED,
    FAILED,
    FETCHED,
    HANDLED,
    TraceLink,
    TraceStep,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

_PATH: Final = "/v1/traces"
_QUEUE_SPANS: Final = 2048
_EXPORT_S: Final = 5.0
_SCHEDULE_MS: Final = 500
_NS_PER_MS: Final = 1_000_000


def open_otlp_spans(endpoint: str, *, parents: bool) -> OtlpSpans:
    """Where spans go to; raises `SettingError` if that cannot be."""
    if not endpoint.startswith(("http://", "https://")):
        raise SettingError(
            f"The setting trace.otlp.endpoint cannot be {endpoint!r}: it must be an address such "
            "as http://127.0.0.1:4318."
        )
    try:
        return OtlpSpans(endpoint, parents=parents)
    except ImportError:
        raise missing_package("trace.otlp.endpoint", "opentelemetry-sdk", "otel") from None


class OtlpSpans:
    """A sink for steps; `parents` makes a handler's span a child and not a link."""

    def __init__(self, endpoint: str, *, parents: bool) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        has_path = endpoint.split("://", 1)[1].rstrip("/").count("/") > 0
        url = endpoint if has_path else endpoint.rstrip("/") + _PATH
        self.dropped_count = 0
        self._makes = _SpanMaker(parents=parents)
        self._processor = BatchSpanProcessor(
            OTLPSpanExporter(endpoint=url, timeout=_EXPORT_S),
            max_queue_size=_QUEUE_SPANS,
            schedule_delay_millis=_SCHEDULE_MS,
        )

    def put(self, steps: Sequence[TraceStep], links: Sequence[TraceLink]) -> None:
        """Called from any thread; the SDK drops what it has no room for, and logs that."""
        for span in self._makes.spans(steps):
            self._processor.on_end(span)

    async def close(self, timeout_s: float) -> None:
        """Export what is left. The SDK waits in a thread that nobody has to wait for."""
        loop = asyncio.get_running_loop()
        is_done = asyncio.Event()

        def end() -> None:
            self._processor.force_flush()
            self._processor.shutdown()  # type: ignore[no-untyped-call]
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(is_done.set)

        threading.Thread(target=end, name="end of spans", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await is_done.wait()


class _SpanMaker:
    def __init__(self, *, parents: bool) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        self._parents = parents
        self._resource = Resource.create()
        self._new_trace_id = RandomIdGenerator().generate_trace_id

    def spans(self, steps: Sequence[TraceStep]) -> list[ReadableSpan]:
        """The spans that end with these steps of one event."""
        spans: list[ReadableSpan] = []
        batches: dict[str, list[TraceStep]] = {}
        for step in steps:
            if step.step in (ACKNOWLEDGED, FAILED):
                spans.append(self._sent(step))
            elif step.step == HANDLED:
                spans.append(self._handled(step))
            elif step.step in (FETCHED, COMMITTED):
                batches.setdefault(step.topic or "", []).append(step)
        return spans + [self._received(batch) for batch in batches.values()]

    def _sent(self, step: TraceStep) -> ReadableSpan:
        from opentelemetry.trace import SpanKind

        parent = step.details.get("parent_span_id")
        return self._span(
            [step],
            ("send", "send"),
            SpanKind.PRODUCER,
            trace_id=int(step.trace_id, 16),
            parent=None if parent is None else _context(int(step.trace_id, 16), str(parent)),
            began_ms=_number(step, "created_ms"),
        )

    def _handled(self, step: TraceStep) -> ReadableSpan:
        from opentelemetry.trace import SpanKind

        creation = _creation(step)
        is_child = self._parents and creation is not None
        return self._span(
            [step],
            ("process", "process"),
            SpanKind.CONSUMER,
            trace_id=int(step.trace_id, 16) if is_child else self._new_trace_id(),
            parent=creation if is_child else None,
            began_ms=_number(step, "began_ms"),
            is_linked=not is_child,
        )

    def _received(self, steps: Sequence[TraceStep]) -> ReadableSpan:
        from opentelemetry.trace import SpanKind

        is_poll = steps[0].step == FETCHED
        return self._span(
            steps,
            ("poll", "receive") if is_poll else ("commit", "settle"),
            SpanKind.CLIENT,
            trace_id=self._new_trace_id(),
            is_linked=True,
        )

    def _span(
        self,
        steps: Sequence[TraceStep],
        operation: tuple[str, str],
        kind: object,
        *,
        trace_id: int,
        parent: SpanContext | None = None,
        began_ms: int | None = None,
        is_linked: bool = False,
    ) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import Link, SpanKind, Status, StatusCode

        step = steps[0]
        name, operation_type = operation
        links = [_creation(each) for each in steps] if is_linked else []
        attributes: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.operation.name": name,
            "messaging.operation.type": operation_type,
            "messaging.destination.name": step.topic or "",
            "messaging.client.id": step.client_id or "",
        }
        if step.group is not None:
            attributes["messaging.consumer.group.name"] = step.group
        if step.step in (FETCHED, COMMITTED):
            attributes["messaging.batch.message_count"] = len(steps)
        if step.message_id is not None and len(steps) == 1:
            place = MessageId.parse(step.message_id)
            attributes["messaging.destination.partition.id"] = str(place.partition)
            attributes["messaging.kafka.offset"] = place.offset
        status = Status()
        if step.error is not None:
            attributes["error.type"] = step.error.partition(":")[0]
            status = Status(StatusCode.ERROR, step.error)
        begin_ms = step.time_ms if began_ms is None else min(began_ms, step.time_ms)
        return ReadableSpan(
            f"{name} {step.topic}",
            context=_context(trace_id, str(step.details["span_id"])),
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            links=[Link(each) for each in links if each is not None],
            kind=SpanKind(kind),
            status=status,
            start_time=begin_ms * _NS_PER_MS,
            end_time=step.time_ms * _NS_PER_MS,
            instrumentation_scope=InstrumentationScope("headwater"),
        )


def _creation(step: TraceStep) -> SpanContext | None:
    """What sent the record, or what was said to have made it."""
    span_id = step.details.get("creation_span_id")
    return None if span_id is None else _context(int(step.trace_id, 16), str(span_id))


def _context(trace_id: int, span_id: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(trace_id, int(span_id, 16), is_remote=False, trace_flags=TraceFlags(1))


def _number(step: TraceStep, name: str) -> int | None:
    value = step.details.get(name)
    return value if isinstance(value, int) else None
