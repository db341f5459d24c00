"""Made-up facts of messages: records, rows of the audit and steps, with times in seconds."""

from __future__ import annotations

from dataclasses import replace

from headwater.audit.rows import Row
from headwater.base.message_id import MessageId
from headwater.client.tracing.trace_step import Detail, TraceStep
from headwater.delivery.trace.audit_moments import moments_of
from headwater.delivery.trace.event import Event, What
from headwater.delivery.trace.station import Station, TransactionState
from headwater.delivery.trace.timeline import Timeline
from headwater.wire.records import Record, TimestampType, encode_batch, read_batch_header
from headwater.wire.records.record import Header

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
#: The message of `failures`.
FAILED = "orders-0@1234"


def station(
    place: str,
    second: float,
    *headers: Header,
    is_append_time: bool = False,
    leader_epoch: int = 3,
    transaction: TransactionState = TransactionState.NONE,
    ended: float | None = None,
) -> Station:
    """A record of producer 4711 that carries that time."""
    where = MessageId.parse(place)
    record = Record(where.offset, ms(second), b"key", b"value", headers)
    batch = encode_batch(
        [record],
        producer_id=4711,
        producer_epoch=1,
        base_sequence=40,
        leader_epoch=leader_epoch,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
        ),
        transactional=transaction is not TransactionState.NONE,
    )
    ended_ms = None if ended is None else ms(ended)
    return Station(where, record, read_batch_header(batch), transaction, ended_ms)


def log_row(place: str, *points: tuple[float, int, int], leader_epoch: int = 3) -> Row:
    """A row of `broker-1` with these points of second, log end and high watermark."""
    topic, partition, offset = MessageId.parse(place)
    return {
        "tier": "broker",
        "topic": topic,
        "partition": partition,
        "source": f"{topic}/7/{partition}",
        "host": "broker-1",
        "leader_epoch": leader_epoch,
        "from_offset": offset,
        "to_offset": max(offset + 1, *(end for _, end, _ in points)),
        "points": [[ms(second), end, watermark] for second, end, watermark in points],
    }


def group_row(place: str, group: str, *points: tuple[float, int], commits: int = 0) -> Row:
    """A row of `broker-2` with these points of second and committed offset."""
    topic, partition, _ = MessageId.parse(place)
    return {
        "tier": "group",
        "group": group,
        "topic": topic,
        "partition": partition,
        "source": "__consumer_offsets/8/0",
        "host": "broker-2",
        "from_offset": 0,
        "to_offset": 1,
        "count": commits or len(points),
        "points": [[ms(second), offset] for second, offset in points],
        "points_ms": 1_000,
    }


def audited(known: Station, *rows: Row, waited: bool = False) -> Station:
    """The station with what rows tell of it."""
    place = known.place
    found = replace(known, moments=moments_of(rows, *place))
    if waited and known.waited_at is not None:
        found = replace(found, waited=moments_of(rows, *known.waited_at))
    return found


def step(
    name: str,
    second: float,
    place: str | None = None,
    *,
    host: str = "shop-1",
    group: str | None = None,
    error: str | None = None,
    attempt: int | None = None,
    span_id: str = SPAN_ID,
    parent_span_id: str | None = None,
    topic: str | None = None,
    created: float | None = None,
) -> TraceStep:
    if place is not None:
        topic = MessageId.parse(place).topic
    details: dict[str, Detail] = {"span_id": span_id}
    if parent_span_id is not None:
        details["parent_span_id"] = parent_span_id
    if created is not None:
        details["created_ms"] = ms(created)
    return TraceStep(
        TRACE_ID,
        name,
        ms(second),
        place,
        topic=topic,
        host=host,
        group=group,
        error=error,
        attempt=attempt,
        details=details,
    )


def traceparent() -> Header:
    return "traceparent", f"00-{TRACE_ID}-{SPAN_ID}-01".encode()


def failures(*attempts: tuple[int, float, float, str]) -> list[Station]:
    """The stations of a message that billing could not handle: attempt, failed, due, place."""
    found = [station(FAILED, 0)]
    for attempt, failed, due, place in attempts:
        is_letter = place.startswith("dlq.")
        told_by_dlq = (
            ("__dlq.errors.topic", b"orders"),
            ("__dlq.errors.group", b"billing"),
        )
        waited = (
            ("headwater-sent-at", b"1"),
            ("headwater-delayed-offset", b"%d" % (MessageId.parse(place).offset - 1)),
            ("headwater-order", b"1/2/3"),
        )
        found.append(
            station(
                place,
                due,
                ("headwater-origin", FAILED.encode()),
                ("headwater-error", b"no such currency"),
                ("headwater-attempts", b"%d" % attempt),
                ("headwater-last-failure", str(ms(failed)).encode()),
                *(told_by_dlq if is_letter else waited),
            )
        )
    return found


def ms(second: float) -> int:
    return 1_700_000_000_000 + round(second * 1000)


def told(timeline: Timeline) -> list[tuple[str, float, int | None]]:
    """What happened, the second, and how exactly that is known."""
    return [
        (event.what.value, (event.time_ms - ms(0)) / 1000, event.within_ms)
        for event in timeline.events
    ]


def names(timeline: Timeline) -> list[str]:
    return [event.what.value for event in timeline.events]


def event_of(timeline: Timeline, what: What, group: str | None = None) -> Event:
    (found,) = [
        event
        for event in timeline.events
        if event.what is what and (group is None or event.group == group)
    ]
    return found
