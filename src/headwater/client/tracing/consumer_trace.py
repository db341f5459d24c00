"""What a consumer tells of records that are traced: fetched, handled, committed.

Which those are says their `traceparent`. Fetched ones are remembered, up to a bound, until the
group has committed past them. Of records that are not traced only a handler's failure is told.
"""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.tracing.trace_context import (
    TraceContext,
    context_of,
    current,
    sampled_context_of,
)
from headwater.client.tracing.trace_step import (
    COMMITTED,
    FETCHED,
    HANDLED,
    Detail,
    TraceLink,
    TraceStep,
)
from headwater.client.tracing.tracer import Tracer, error_text
from headwater.wire.delayed.headers import ATTEMPTS_HEADER, ORIGIN_HEADER

#: So many fetched records of a partition are remembered until they are committed.
_UNCOMMITTED_MAX: Final = 10_000
_DIGITS_MAX: Final = 9


class _Fetched(NamedTuple):
    offset: int
    context: TraceContext


class ConsumerTrace:
    """An interceptor of its consumer; `identity` says as whom that commits."""

    def __init__(
        self, tracer: Tracer, group: str | None, identity: Callable[[], GroupIdentity]
    ) -> None:
        self.tracer = tracer
        self._group = group
        self._identity = identity
        self._uncommitted: dict[TopicPartition, deque[_Fetched]] = {}

    # -- the polling thread's side ---------------------------------------------------------------

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Records were taken by a poll."""
        found = [
            (record, context)
            for record in records
            if record.headers and (context := sampled_context_of(record.headers)) is not None
        ]
        if found:
            self._fetched(found)
        return records

    def _fetched(self, found: Collection[tuple[ConsumerRecord, TraceContext]]) -> None:
        now_ms, member = self.tracer.wall_ms(), self._member()
        # One for all of a topic, as in OpenTelemetry.
        spans: dict[str, str] = {}
        steps: list[TraceStep] = []
        links: list[TraceLink] = []
        for record, context in found:
            span_id = spans.get(record.topic) or self.tracer.new_span_id()
            spans[record.topic] = span_id
            step = self._step(
                record,
                context.trace_id,
                FETCHED,
                member,
                {"span_id": span_id, "creation_span_id": context.span_id},
                time_ms=now_ms,
            )
            steps.append(step)
            if record.delayed is not None and step.message_id is not None:
                # What its producer was told is another place than this one.
                links.append(TraceLink(step.message_id, context.trace_id))
            self._remember(record, context)
        self.tracer.write(steps, links)

    def _remember(self, record: ConsumerRecord, context: TraceContext) -> None:
        if self._group is None:
            return
        queue = self._uncommitted.get(record.topic_partition)
        if queue is None:
            queue = deque(maxlen=_UNCOMMITTED_MAX)
            self._uncommitted[record.topic_partition] = queue
        # After a seek backwards they are read anew. The loop may take others meanwhile.
        while (last := _last(queue)) is not None and last.offset >= record.offset:
            queue.pop()
        queue.append(_Fetched(record.offset, context))

    # -- the loop's side -------------------------------------------------------------------------

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The group has committed these."""
        now_ms, steps = self.tracer.wall_ms(), list[TraceStep]()
        spans: dict[str, str] = {}
        for partition, committed in offsets.items():
            for fetched in _taken(self._uncommitted.get(partition), committed.offset):
                span_id = spans.setdefault(partition.topic, self.tracer.new_span_id())
                steps.append(
                    self.tracer.step(
                        fetched.context.trace_id,
                        COMMITTED,
                        time_ms=now_ms,
                        message_id=str(MessageId(*partition, fetched.offset)),
                        topic=partition.topic,
                        group=self._group,
                        member=self._member(),
                        details={
                            "offset": committed.offset,
                            "span_id": span_id,
                            "creation_span_id": fetched.context.span_id,
                        },
                    )
                )
        if steps:
            self.tracer.write(steps)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """They belong to others now."""
        for partition in partitions:
            self._uncommitted.pop(partition, None)

    # -- whoever handles records -----------------------------------------------------------------

    def handling(self, record: ConsumerRecord) -> Handling:
        return Handling(self, record)

    def handled(
        self,
        record: ConsumerRecord,
        context: TraceContext | None,
        span_id: str,
        began_ms: int,
        error: BaseException | None,
    ) -> None:
        """A handler is done with a record, which is traced or has failed."""
        links: list[TraceLink] = []
        trace_id = context.trace_id if context is not None else self._own_trace_id(record)
        now_ms = self.tracer.wall_ms()
        step = self._step(
            record,
            trace_id,
            HANDLED,
            self._member(),
            {
                "span_id": span_id,
                "creation_span_id": None if context is None else context.span_id,
                "began_ms": began_ms,
                "duration_ms": max(0, now_ms - began_ms),
            },
            time_ms=now_ms,
            error=None if error is None else error_text(error),
        )
        if context is None and step.message_id is not None:
            links.append(TraceLink(step.message_id, trace_id))
        self.tracer.write([step], links)

    def _own_trace_id(self, record: ConsumerRecord) -> str:
        """Of a record that is not traced: the one of its trace, if it has one at all."""
        context = context_of(record.headers)
        return self.tracer.new_trace_id() if context is None else context.trace_id

    def _step(
        self,
        record: ConsumerRecord,
        trace_id: str,
        step: str,
        member: str | None,
        told: Mapping[str, Detail],
        **what: Any,
    ) -> TraceStep:
        details = {name: value for name, value in told.items() if value is not None}
        attempt: int | None = None
        for name, value in record.headers:
            if name == ATTEMPTS_HEADER and value and value.isdigit() and len(value) <= _DIGITS_MAX:
                attempt = int(value) + 1
            elif name == ORIGIN_HEADER and value:
                details["origin"] = value.decode(errors="replace")
        if record.delayed is not None:
            details.setdefault("origin", str(record.delayed.id))
        if record.timestamp >= 0:
            details["record_ms"] = record.timestamp
        place = MessageId(record.topic, record.partition, record.offset)
        return self.tracer.step(
            trace_id,
            step,
            message_id=str(place),
            topic=record.topic,
            group=self._group,
            member=member,
            attempt=attempt,
            details=details,
            **what,
        )

    def _member(self) -> str | None:
        try:
            return self._identity().member_id or None
        except KafkaError:
            return None


class Handling:
    """For `with`, around the handling of one record: a step of its trace, and what it makes too."""

    __slots__ = ("_began_ms", "_context", "_record", "_span_id", "_token", "_trace")

    def __init__(self, trace: ConsumerTrace, record: ConsumerRecord) -> None:
        self._trace = trace
        self._record = record
        self._context = sampled_context_of(record.headers) if record.headers else None
        self._span_id = ""
        self._began_ms = 0
        self._token: contextvars.Token[TraceContext | None] | None = None

    def __enter__(self) -> None:
        tracer = self._trace.tracer
        self._began_ms = tracer.wall_ms()
        self._span_id = tracer.new_span_id()
        context = self._context
        if context is not None and tracer.parents:
            context = context.child(self._span_id)
        self._token = current.set(context)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._token is not None:
            current.reset(self._token)
        failure = error if isinstance(error, Exception) else None
        if error is not None and failure is None:
            # The handler was ended, by a cancellation for example: it is not done.
            return
        if self._context is not None or failure is not None:
            self._trace.handled(self._record, self._context, self._span_id, self._began_ms, failure)


def _last(queue: deque[_Fetched]) -> _Fetched | None:
    try:
        return queue[-1]
    except IndexError:
        return None


def _taken(queue: deque[_Fetched] | None, offset: int) -> Iterable[_Fetched]:
    """Those in front of an offset, taken out."""
    while queue:
        try:
            first = queue.popleft()
        except IndexError:
            return
        if first.offset >= offset:
            queue.appendleft(first)
            return
        yield first
