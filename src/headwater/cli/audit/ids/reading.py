"""Reads the places that somebody asks about, and compares what is there."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headwater.base.counted import counted
from headwater.cli.audit.ids.lake_ids import need_arrow, read_lake_ids
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.ranges.range_client import RangeClient
from headwater.delivery.audit.id_checker import IdChecker, IdRange
from headwater.delivery.audit.topic_ids import (
    IdPiece,
    TopicStretch,
    find_stretch,
    read_topic_ids,
)

#: So much of what came before is read too, to see what is missing at the edge.
_MARGIN_MS: Final = 60_000
_TELL_INTERVAL_S: Final = 2.0

OnCluster = Callable[[Callable[[ClusterConnection], Awaitable[TopicStretch]]], TopicStretch]


class AskedIds(NamedTuple):
    """What somebody wants to know."""

    topic: str
    #: None for all that is there.
    last_ms: int | None
    #: What is younger may still be on its way.
    grace_ms: int
    against: str | None = None
    lake: str | None = None


@dataclass
class PlaceIds:
    """What was found in one place."""

    name: str
    checker: IdChecker
    without_id_count: int = 0
    doubled: list[IdRange] = field(default_factory=list)


@dataclass
class IdReport:
    """All that was found out."""

    asked: AskedIds
    place: PlaceIds
    is_compacted: bool
    #: What was sent and is not in the topic.
    missing: list[IdRange]
    #: What would be missing, if its transactions had not been aborted.
    aborted: list[IdRange]
    other: PlaceIds | None = None
    #: What is in the topic and not in the other place.
    missing_there: list[IdRange] = field(default_factory=list)
    #: What is in the other place and not in the topic.
    only_there: list[IdRange] = field(default_factory=list)

    @property
    def alarms(self) -> list[str]:
        """What somebody should look at, as sentences."""
        found = []
        topic = self.place.name
        if (count := count_closed(self.missing)) and not self.is_compacted:
            found.append(f"{_ids(count)} missing in {topic}.")
        for place in (self.place, *([] if self.other is None else [self.other])):
            if count := sum(each.id_count for each in place.doubled):
                found.append(f"{counted(count, 'id')} came more than once in {place.name}.")
            if not place.checker.is_complete:
                found.append(
                    f"{place.checker.unchecked_count} records of {place.name} were not looked at, "
                    "since the memory for ids was used up: ask about a shorter time."
                )
        if self.other is not None and (count := count_closed(self.missing_there)):
            found.append(f"{_ids(count)} in {topic} and not in {self.other.name}.")
        return found


def count_closed(ranges: Iterable[IdRange]) -> int:
    """How many ids that cannot come any more."""
    return sum(each.id_count for each in ranges if not each.is_open)


def count_open(ranges: Iterable[IdRange]) -> int:
    return sum(each.id_count for each in ranges if each.is_open)


def _ids(count: int) -> str:
    return "1 id is" if count == 1 else f"{count} ids are"


def make_report(asked: AskedIds, servers: str, on_cluster: OnCluster) -> IdReport:
    """Read all that is asked about; raises `KafkaError` and what reading a lake raises."""
    if asked.lake is not None:
        need_arrow()
    now_ms = time.time_ns() // 1_000_000
    from_ms = 0 if asked.last_ms is None else max(now_ms - asked.last_ms, 0)
    read_from_ms = None if asked.last_ms is None else max(from_ms - _MARGIN_MS, 0)
    settled_ms = now_ms - asked.grace_ms
    stretch = on_cluster(lambda connection: find_stretch(connection, asked.topic, read_from_ms))
    place = PlaceIds(asked.topic, IdChecker(from_ms=from_ms, settled_ms=settled_ms))
    _read(place, stretch, servers)
    missing = list(place.checker.missing(begins_at_zero=stretch.is_whole))
    aborted: list[IdRange] = []
    if missing:
        with_aborted = PlaceIds(asked.topic, IdChecker())
        _read(with_aborted, stretch, servers, isolation_level="read_uncommitted")
        aborted, missing = with_aborted.checker.parted(missing)
    report = IdReport(asked, place, stretch.is_compacted, missing, aborted)
    if asked.against is None and asked.lake is None:
        return report
    checker = IdChecker(from_ms=from_ms, settled_ms=settled_ms)
    if asked.against is not None:
        against = asked.against
        other = PlaceIds(against, checker)
        # Asked for now: what came into the topic has had the time of reading to get there.
        copy = on_cluster(lambda connection: find_stretch(connection, against, read_from_ms))
        _read(other, copy, servers)
    else:
        other = PlaceIds(str(asked.lake), checker)
        _feed(other, read_lake_ids(other.name, asked.topic), None)
    other.doubled = list(other.checker.doubled())
    report.other = other
    report.missing_there = list(place.checker.not_in(checker))
    report.only_there = list(checker.not_in(place.checker))
    return report


def _read(
    place: PlaceIds, stretch: TopicStretch, servers: str, isolation_level: str = "read_committed"
) -> None:
    client = RangeClient({"bootstrap.servers": servers, "isolation.level": isolation_level})
    try:
        _feed(place, read_topic_ids(client, stretch), stretch.offset_count)
    finally:
        client.close()
    place.doubled = list(place.checker.doubled())


def _feed(place: PlaceIds, pieces: Iterable[IdPiece], total: int | None) -> None:
    """Look at all; on a terminal, tell how far it is if that takes long."""
    feed = place.checker.feed
    told_s = time.monotonic()
    passed = 0
    for piece in pieces:
        for audit_id in piece.ids:
            feed(audit_id)
        place.without_id_count += piece.without_id_count
        passed += piece.offset_count
        if sys.stderr.isatty() and time.monotonic() - told_s >= _TELL_INTERVAL_S:
            told_s = time.monotonic()
            share = "" if not total else f" of {total}"
            print(f"{place.name}: {passed}{share} records read", file=sys.stderr)
