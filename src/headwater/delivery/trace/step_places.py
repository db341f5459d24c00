"""Of which place of a message a step tells that a client wrote.

A step names the message by its id as soon as it has one. Before that, spans do: the producer's own,
which the acknowledgement brings together with an id, and the one in the record's `traceparent`.
Copies in retry topics keep that header, so there the topic has to be the same too, and of several
copies in one topic it is the one that was made last by then.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.client.tracing.trace_context import context_of
from headwater.client.tracing.trace_step import ACKNOWLEDGED, TraceStep
from headwater.delivery.trace.station import Station


class StepPlaces:
    def __init__(self, stations: Sequence[Station], steps: Sequence[TraceStep]) -> None:
        self._stations = stations
        self._by_id = {
            str(each): number for number, station in enumerate(stations) for each in station.ids
        }
        #: When a record was made, as its producer says or as it does itself.
        self._made_ms = [
            station.record.timestamp if station.sent_ms is None else station.sent_ms
            for station in stations
        ]
        self._own_spans: dict[object, int] = {}
        for step in steps:
            number = self._by_id.get(step.message_id or "")
            if step.step != ACKNOWLEDGED or number is None:
                continue
            self._own_spans[step.details.get("span_id")] = number
            created_ms = step.details.get("created_ms")
            if isinstance(created_ms, int):
                self._made_ms[number] = created_ms
        contexts = [context_of(station.record.headers) for station in stations]
        #: The spans in headers, where several records may have the same.
        self._spans = [None if each is None else each.span_id for each in contexts]

    def find(self, step: TraceStep) -> int | None:
        """The number of the station; None if the step is about another message."""
        if step.message_id is not None:
            names = [step.message_id, step.details.get("origin")]
            return next((self._by_id[name] for name in names if name in self._by_id), None)
        span_ids = (step.details.get("span_id"), step.details.get("parent_span_id"))
        known = self._own_spans.get(span_ids[0])
        if known is not None and span_ids[0] not in self._spans:
            return known
        # A request is told with the span of the header: that of whoever made it first.
        found = [
            number
            for number, span_id in enumerate(self._spans)
            if span_id is not None and span_id in span_ids and self._has_topic(number, step)
        ]
        made = [number for number in found if self._made_ms[number] <= step.time_ms]
        return max(made or found, key=self._made_ms.__getitem__, default=None)

    def _has_topic(self, number: int, step: TraceStep) -> bool:
        topics = {each.topic for each in self._stations[number].ids}
        return step.topic is None or step.topic in topics
