"""When a place of a log was written and replicated, and groups passed it: from rows of `__audit`.

Sans-io. A row of the broker's tier has points of time, log end and high watermark: the first point
whose log end lies behind an offset is when its record was there at the latest, and the point before
it is when it was not there yet. A row of the group's tier has points of time and committed offset;
each stands for as much time as `points_ms` says, and is exact if there was no other commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headwater.audit.rows import BROKER_TIER, Row, points_of
from headwater.delivery.trace.event import AT_THE_LATEST

_POINT_MS: Final = 1_000


class Moment(NamedTuple):
    """At that time by the clock of `host`, or up to `within_ms` before."""

    time_ms: int
    within_ms: int | None
    host: str


class GroupMoment(NamedTuple):
    """The committed offset of a group came to lie behind the place, or in front of it again."""

    group: str
    has_passed: bool
    moment: Moment


@dataclass(slots=True)
class PlaceMoments:
    """What `__audit` tells of one offset of a partition."""

    appended: Moment | None = None
    replicated: Moment | None = None
    #: In which epoch the leader counted it.
    leader_epoch: int | None = None
    #: Since when that leader has looked at its log, if it was another one that took the record.
    leads_since: Moment | None = None
    #: Whether the row that counts the offset was read.
    is_published: bool = False
    groups: list[GroupMoment] = field(default_factory=list)


def moments_of(rows: Iterable[Row], topic: str, partition: int, offset: int) -> PlaceMoments:
    """What rows tell of a place; rows of other partitions are passed over."""
    found = PlaceMoments()
    commits: dict[str, list[Row]] = {}
    for row in rows:
        if (row["topic"], row["partition"]) != (topic, partition):
            continue
        if row["tier"] == BROKER_TIER:
            if row["from_offset"] <= offset < row["to_offset"] and "points" in row:
                _add_points(found, row, offset)
        else:
            commits.setdefault(row["group"], []).append(row)
    for group, some in sorted(commits.items()):
        found.groups += _group_moments(group, some, offset)
    return found


def _add_points(found: PlaceMoments, row: Row, offset: int) -> None:
    found.is_published = True
    epoch = row.get("leader_epoch")
    found.leader_epoch = epoch if type(epoch) is int else None
    points, host = log_points(row), _host(row)
    found.appended = _first_behind([(point[0], point[1]) for point in points], offset, host)
    found.replicated = _first_behind([(point[0], point[2]) for point in points], offset, host)
    if points:
        found.leads_since = Moment(points[0][0], AT_THE_LATEST, host)


def _first_behind(points: Sequence[tuple[int, int]], offset: int, host: str) -> Moment | None:
    before_ms: int | None = None
    for time_ms, reached in points:
        if reached > offset:
            within_ms = AT_THE_LATEST if before_ms is None else max(time_ms - before_ms, 0)
            return Moment(time_ms, within_ms, host)
        before_ms = time_ms
    return None


def _group_moments(group: str, rows: Iterable[Row], offset: int) -> list[GroupMoment]:
    moments: list[GroupMoment] = []
    has_passed = False
    before_ms: int | None = None
    for point in group_points(rows):
        if (point.offset > offset) != has_passed:
            has_passed = not has_passed
            within_ms = point.within_ms
            if before_ms is not None:
                within_ms = min(within_ms, max(point.time_ms - before_ms, 0))
            moment = Moment(point.time_ms, within_ms, point.host)
            moments.append(GroupMoment(group, has_passed, moment))
        before_ms = point.time_ms
    return moments


class GroupPoint(NamedTuple):
    """A commit, or the last of those of `within_ms`."""

    time_ms: int
    offset: int
    within_ms: int
    host: str


def group_points(rows: Iterable[Row]) -> Iterator[GroupPoint]:
    """The points of one group and partition, in their order."""
    # A row of a later stretch is a later row.
    for row in sorted(rows, key=lambda row: (str(row["source"]), int(row["from_offset"]))):
        points, host = points_of(row, "points", 2), _host(row)
        step_ms = row.get("points_ms")
        step_ms = step_ms if type(step_ms) is int and step_ms > 0 else _POINT_MS
        within_ms = 0 if row.get("count") == len(points) else step_ms
        for time_ms, offset in points:
            yield GroupPoint(time_ms, offset, within_ms, host)


def log_points(row: Row) -> list[list[int]]:
    """Time, log end and high watermark of each point of a row of the broker's tier."""
    return points_of(row, "points", 3)


def _host(row: Row) -> str:
    host = row.get("host")
    return host if isinstance(host, str) else "a broker"
