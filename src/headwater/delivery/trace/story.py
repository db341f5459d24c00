"""The events of a message, made of what its stations, the audit and clients tell.

Sans-io: whoever reads all that gives it to `tell`, which tells each thing once. Where two sources
know of the same, as a record and its producer know when it was created, the closer one is heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from headwater.base.message_id import MessageId
from headwater.client.tracing import trace_step
from headwater.client.tracing.trace_step import Detail, TraceStep
from headwater.delivery.trace.audit_moments import Moment, PlaceMoments
from headwater.delivery.trace.event import (
    BROKERS_CLOCK,
    PRODUCER_CLOCK,
    Event,
    Source,
    What,
)
from headwater.delivery.trace.station import Kind, Station, TransactionState, parents_of
from headwater.delivery.trace.step_places import StepPlaces
from headwater.delivery.trace.timeline import Timeline, make_timeline
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.records import BatchHeader, Record, TimestampType

_STEPS: Final = {
    trace_step.CREATED: What.CREATED,
    trace_step.SENT: What.SENT,
    trace_step.RETRIED: What.RETRIED,
    trace_step.ACKNOWLEDGED: What.ACKNOWLEDGED,
    trace_step.FAILED: What.FAILED,
    trace_step.FETCHED: What.FETCHED,
    trace_step.HANDLED: What.HANDLED,
    trace_step.COMMITTED: What.COMMITTED,
}
_TRANSACTION_ENDS: Final = {
    TransactionState.COMMITTED: What.TRANSACTION_COMMITTED,
    TransactionState.ABORTED: What.TRANSACTION_ABORTED,
}


def tell(
    stations: Sequence[Station], steps: Sequence[TraceStep] = (), notes: Sequence[str] = ()
) -> Timeline:
    """The timeline of a message; its first station is where it began."""
    if not stations:
        return make_timeline(unplaced_events(steps), {}, notes)
    parents = parents_of(stations)
    written = written_events(stations, steps)
    has_created = {event.station for event in written if event.what is What.CREATED}
    told: list[Event] = []
    for number in range(len(stations)):
        told += [
            event
            for event in _station_events(number, stations, parents.get(number))
            if event.what is not What.CREATED or number not in has_created
        ]
    return make_timeline([*told, *written], parents, notes)


# -- what stations tell --------------------------------------------------------------------------


def _station_events(number: int, stations: Sequence[Station], parent: int | None) -> list[Event]:
    station = stations[number]
    kind = station.kind
    if kind is Kind.ORIGINAL or parent is None:
        events = _original_events(station)
    elif kind is Kind.RETRY:
        events = [_shown_again(station)]
    else:
        events = [_moved(station, kind)]
    events += _group_events(station)
    events = [replace(event, station=number) for event in events]
    if parent is not None and kind in (Kind.RETRY, Kind.LETTER) and station.last_failure_ms:
        before = stations[parent]
        events.append(_sent_on(station, parent, before))
    return events


def _original_events(station: Station) -> list[Event]:
    record, header = station.record, station.header
    has_waited = station.waited_at is not None
    moments = station.waited if has_waited else station.moments
    place = station.ids[0]
    events: list[Event] = []
    has_append_time = header is not None and header.timestamp_type is TimestampType.LOG_APPEND_TIME
    created_ms = station.sent_ms if has_waited else None if has_append_time else record.timestamp
    if created_ms is not None and created_ms >= 0:
        events.append(
            Event(What.CREATED, created_ms, 0, Source.RECORD, PRODUCER_CLOCK, place=place)
        )
    events += _stored_events(place, station, moments, has_append_time and not has_waited)
    what = _TRANSACTION_ENDS.get(station.transaction)
    if what is not None and station.ended_ms is not None:
        events.append(Event(what, station.ended_ms, 0, Source.RECORD, BROKERS_CLOCK, place=place))
    if has_waited:
        events.append(_delivered(station))
    return events


def _stored_events(
    place: MessageId, station: Station, moments: PlaceMoments | None, has_append_time: bool
) -> list[Event]:
    events: list[Event] = []
    details = {} if station.waited_at is not None else batch_details(station)
    appended = None if moments is None else moments.appended
    if has_append_time:
        clock = BROKERS_CLOCK if appended is None else appended.host
        host = None if appended is None else appended.host
        events.append(
            Event(
                What.APPENDED,
                station.record.timestamp,
                0,
                Source.RECORD,
                clock,
                place=place,
                host=host,
                details=details,
            )
        )
    elif appended is not None:
        events.append(_at(appended, What.APPENDED, place, details))
    if moments is None:
        return events
    header = station.header
    if (
        header is not None
        and moments.leads_since is not None
        and moments.leader_epoch is not None
        and station.waited_at is None
        and header.leader_epoch < moments.leader_epoch
    ):
        epochs: dict[str, Detail] = {
            "leader_epoch_before": header.leader_epoch,
            "leader_epoch": moments.leader_epoch,
        }
        events.append(_at(moments.leads_since, What.LEADER_CHANGED, place, epochs))
    if moments.replicated is not None:
        events.append(_at(moments.replicated, What.REPLICATED, place))
    return events


def batch_details(station: Station) -> dict[str, Detail]:
    """What the header of the batch says of the record."""
    header = station.header
    if header is None:
        return {"format": "old"}
    return {
        "batch_base_offset": header.base_offset,
        "batch_records": header.record_count,
        "batch_bytes": header.size_bytes,
        "compression": header.compression.name.lower(),
        "leader_epoch": header.leader_epoch,
        **_producer_details(header, station.record),
    }


def _producer_details(header: BatchHeader, record: Record) -> dict[str, Detail]:
    if not header.has_producer_id or header.producer_id == DELIVERY_PRODUCER_ID:
        return {}
    details: dict[str, Detail] = {
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "is_transactional": header.is_transactional,
    }
    if header.base_sequence >= 0:
        delta = record.offset - header.base_offset
        details["sequence"] = (header.base_sequence + delta) % 2**31
    return details


def _delivered(station: Station) -> Event:
    """A delayed record is shown: no earlier than it was due, and its copy says when that was."""
    due_ms = station.record.timestamp
    details: dict[str, Detail] = {"due_ms": due_ms, "delayed_offset": station.ids[0].offset}
    asked_ms = station.asked_delay_ms
    if asked_ms is not None and _may_be_stored(station, due_ms - asked_ms):
        details["asked_ms"] = asked_ms
    return replace(_due(station, due_ms), details=details)


def _may_be_stored(station: Station, time_ms: int) -> bool:
    """Whether it may have come at that time: if not, it was rescheduled, or its level was raised.

    A delay counts from when a record is stored.
    """
    appended = None if station.waited is None else station.waited.appended
    if appended is None:
        return station.sent_ms is None or time_ms >= station.sent_ms
    is_late_enough = appended.within_ms is None or time_ms >= appended.time_ms - appended.within_ms
    return is_late_enough and time_ms <= appended.time_ms


def _shown_again(station: Station) -> Event:
    event = _due(station, station.record.timestamp)
    return replace(
        event,
        group=station.group,
        attempt=station.attempts,
        details={"due_ms": station.record.timestamp},
    )


def _due(station: Station, due_ms: int) -> Event:
    moment = None if station.moments is None else station.moments.appended
    if moment is None:
        return Event(What.DELIVERED, due_ms, 0, Source.HEADERS, BROKERS_CLOCK, place=station.place)
    within_ms = max(moment.time_ms - due_ms, 0)
    if moment.within_ms is not None:
        within_ms = min(within_ms, moment.within_ms)
    return replace(_at(moment, What.DELIVERED, station.place), within_ms=within_ms)


def _moved(station: Station, kind: Kind) -> Event:
    what = What.DEAD_LETTER if kind is Kind.LETTER else What.SENT_BACK
    return Event(
        what,
        station.record.timestamp,
        0,
        Source.RECORD,
        BROKERS_CLOCK if kind is Kind.LETTER else PRODUCER_CLOCK,
        place=station.place,
        group=station.group if kind is Kind.LETTER else None,
        attempt=station.attempts if kind is Kind.LETTER else station.redrives,
        error=station.error if kind is Kind.LETTER else None,
    )


def _sent_on(station: Station, parent: int, before: Station) -> Event:
    """Counted by the broker, when the group sent it to its retry topic."""
    is_retry = station.kind is Kind.RETRY
    place = station.waited_at if is_retry else None
    # What is given up was sent to the retry topic too: where its key belongs, as the time before.
    has_same_broker = before.kind is Kind.RETRY and station.record.key is not None
    moments = station.moments if is_retry else before.moments if has_same_broker else None
    moment = None if moments is None else moments.appended
    return Event(
        What.SENT_ON,
        station.last_failure_ms or 0,
        0,
        Source.HEADERS,
        BROKERS_CLOCK if moment is None else moment.host,
        station=parent,
        place=place,
        group=station.group,
        attempt=station.attempts,
        error=station.error,
    )


def _group_events(station: Station) -> list[Event]:
    if station.moments is None:
        return []
    return [
        replace(
            _at(each.moment, What.PASSED if each.has_passed else What.WENT_BACK, station.place),
            group=each.group,
        )
        for each in station.moments.groups
    ]


def _at(
    moment: Moment, what: What, place: MessageId, details: dict[str, Detail] | None = None
) -> Event:
    return Event(
        what,
        moment.time_ms,
        moment.within_ms,
        Source.AUDIT,
        moment.host,
        place=place,
        host=moment.host,
        details=details or {},
    )


# -- what clients wrote --------------------------------------------------------------------------


def written_events(stations: Sequence[Station], steps: Sequence[TraceStep]) -> list[Event]:
    """The steps as events of the stations that they tell of; those of other messages are not."""
    place_of = StepPlaces(stations, steps).find
    return [_written(found, step) for step in steps if (found := place_of(step)) is not None]


def unplaced_events(steps: Iterable[TraceStep]) -> list[Event]:
    """All steps of a trace of which no message is known: of one that was never stored, say."""
    return [_written(0, step) for step in steps]


def _written(station: int, step: TraceStep) -> Event:
    what = _STEPS.get(step.step, What.OTHER)
    if what is What.HANDLED and step.error is not None:
        what = What.NOT_HANDLED
    return Event(
        what,
        step.time_ms,
        0,
        Source.WRITTEN,
        step.host or step.client_id or "a client",
        station=station,
        place=None if step.message_id is None else MessageId.parse(step.message_id),
        group=step.group,
        host=step.host,
        client_id=step.client_id,
        member=step.member,
        attempt=step.attempt,
        error=step.error,
        text=step.step if what is What.OTHER else "",
        details=step.details,
    )
