"""The slowest messages of a topic by what they waited for: from what clients wrote, and the audit.

Sans-io. Steps tell of each message that was traced. Where none are written, points of the audit do,
one a second: between two points that follow each other the last record is named, since it is the
one whose times are known. So a wait that is told of the audit is good to two seconds, and there may
be messages between that waited as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from headwater.audit.rows import BROKER_TIER, Row
from headwater.base.message_id import MessageId
from headwater.client.tracing import trace_step
from headwater.client.tracing.trace_step import TraceStep
from headwater.delivery.trace.audit_moments import group_points, log_points
from headwater.delivery.trace.event import Source

REPLICATION: Final = "replication"
LAG: Final = "lag"
HANDLING: Final = "handling"
TOTAL: Final = "total"
#: Two points of time, each good to a second.
_AUDIT_WITHIN_MS: Final = 2_000


class SlowMessage(NamedTuple):
    """A message that waited for something, or in all, so long."""

    id: MessageId
    step: str
    duration_ms: int
    within_ms: int
    #: When it came.
    time_ms: int
    group: str | None
    source: Source


def slowest(found: Iterable[SlowMessage]) -> list[SlowMessage]:
    """Each message once for each group; what a client wrote is closer than what brokers saw."""
    best: dict[tuple[MessageId, str | None], SlowMessage] = {}
    for each in found:
        known = best.get((each.id, each.group))
        if known is None or (each.source is Source.WRITTEN, each.duration_ms) > (
            known.source is Source.WRITTEN,
            known.duration_ms,
        ):
            best[each.id, each.group] = each
    return sorted(best.values(), key=lambda each: (-each.duration_ms, each.id))


# -- what clients wrote --------------------------------------------------------------------------


def slow_by_steps(steps: Iterable[TraceStep], topic: str, step: str) -> Iterator[SlowMessage]:
    """How long each traced message of a topic took, for each group that had it."""
    by_message: dict[str, list[TraceStep]] = {}
    for each in steps:
        if each.message_id is not None and each.topic == topic:
            by_message.setdefault(each.message_id, []).append(each)
    for name, some in by_message.items():
        yield from _of_message(MessageId.parse(name), some, step)


def _of_message(place: MessageId, steps: Sequence[TraceStep], step: str) -> Iterator[SlowMessage]:
    acknowledged = _first(steps, trace_step.ACKNOWLEDGED)
    came_ms = _came_ms(steps)
    groups = sorted({each.group for each in steps if each.group is not None})
    for group in groups:
        theirs = [each for each in steps if each.group == group]
        fetched = _first(theirs, trace_step.FETCHED)
        handled = _first(theirs, trace_step.HANDLED)
        ended = _first(theirs, trace_step.COMMITTED) or handled
        begin_ms = end_ms = None
        if step == LAG and fetched is not None:
            begin_ms = came_ms if acknowledged is None else acknowledged.time_ms
            end_ms = fetched.time_ms
        elif step == HANDLING and handled is not None:
            began_ms = handled.details.get("began_ms")
            if isinstance(began_ms, int):
                begin_ms = began_ms
            elif fetched is not None:
                begin_ms = fetched.time_ms
            end_ms = handled.time_ms
        elif step == TOTAL and ended is not None:
            begin_ms, end_ms = came_ms, ended.time_ms
        if begin_ms is not None and end_ms is not None:
            duration_ms = max(end_ms - begin_ms, 0)
            yield SlowMessage(place, step, duration_ms, 0, begin_ms, group, Source.WRITTEN)


def _came_ms(steps: Sequence[TraceStep]) -> int | None:
    """When it was created, as its producer says or its record."""
    for each in steps:
        for name in ("created_ms", "record_ms"):
            time_ms = each.details.get(name)
            if isinstance(time_ms, int):
                return time_ms
    return None


def _first(steps: Sequence[TraceStep], name: str) -> TraceStep | None:
    found = [each for each in steps if each.step == name]
    return min(found, key=lambda each: each.time_ms, default=None)


# -- what brokers saw ----------------------------------------------------------------------------


def slow_by_audit(rows: Sequence[Row], topic: str, step: str) -> Iterator[SlowMessage]:
    """The last record of each second, from when it came to what it waited for."""
    by_partition: dict[int, list[Row]] = {}
    commits: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row["topic"] != topic:
            continue
        if row["tier"] == BROKER_TIER:
            by_partition.setdefault(row["partition"], []).append(row)
        else:
            commits.setdefault((row["group"], row["partition"]), []).append(row)
    for partition, some in by_partition.items():
        if step == REPLICATION:
            for row in some:
                yield from _replicated(topic, partition, row)
        elif step in (LAG, TOTAL):
            for (group, number), theirs in commits.items():
                if number == partition:
                    yield from _passed(topic, partition, some, group, theirs, step)


def _replicated(topic: str, partition: int, row: Row) -> Iterator[SlowMessage]:
    points = log_points(row)
    number = 0
    for time_ms, end in _ends(row):
        while number < len(points) and points[number][2] < end:
            number += 1
        if number == len(points):
            return
        duration_ms = max(points[number][0] - time_ms, 0)
        place = MessageId(topic, partition, end - 1)
        yield SlowMessage(
            place, REPLICATION, duration_ms, _AUDIT_WITHIN_MS, time_ms, None, Source.AUDIT
        )


def _passed(
    topic: str, partition: int, rows: list[Row], group: str, commits: list[Row], step: str
) -> Iterator[SlowMessage]:
    ends = sorted({end: time_ms for row in rows for time_ms, end in _ends(row)}.items())
    points = [(each.time_ms, each.offset) for each in group_points(commits)]
    number = 0
    for end, time_ms in ends:
        # The first commit behind it that was made after it came.
        while number < len(points) and (
            points[number][1] < end or points[number][0] < time_ms - _AUDIT_WITHIN_MS
        ):
            number += 1
        if number == len(points):
            return
        duration_ms = max(points[number][0] - time_ms, 0)
        place = MessageId(topic, partition, end - 1)
        yield SlowMessage(place, step, duration_ms, _AUDIT_WITHIN_MS, time_ms, group, Source.AUDIT)


def _ends(row: Row) -> Iterator[tuple[int, int]]:
    """When the log came to end where, as far as this row counts it."""
    for before, point in pairwise(log_points(row)):
        if point[1] > before[1] and row["from_offset"] < point[1] <= row["to_offset"]:
            yield point[0], point[1]
