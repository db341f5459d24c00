"""Events of one message in an order in which nothing comes before what caused it.

Times are told by the clocks of different machines, so an order by time alone would show a record as
handled before it was sent. What causes what is known: a record is appended before it is replicated,
is given to a group after that, and is sent on after it failed. So events are sorted by time as far
as that allows it, and where the clocks say otherwise, the timeline says which of them is ahead.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from headwater.delivery.trace.event import Event, What

_RANKS: Final = {what: rank for rank, what in enumerate(What)}
#: What goes before all that becomes of a record.
_BEFORE_ALL: Final = frozenset({What.CREATED, What.SENT})
#: How a record gets to a place, which is before all that becomes of it there.
_ARRIVALS: Final = frozenset({What.APPENDED, What.DELIVERED, What.DEAD_LETTER, What.SENT_BACK})
#: What a group does before it sends a record on.
_IN_HAND: Final = frozenset({What.FETCHED, What.HANDLED, What.NOT_HANDLED, What.SENT_ON})
_COMMITS: Final = frozenset({What.PASSED, What.WENT_BACK})
_BY_GROUP: Final = _IN_HAND | _COMMITS | {What.COMMITTED}
#: A clock that is ahead by less is as good as right.
SKEW_MIN_MS: Final = 5


class ClockSkew(NamedTuple):
    """One clock was ahead of another by so much, or more."""

    clock: str
    other: str
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is known of a message."""

    events: Sequence[Event]
    skews: Sequence[ClockSkew] = ()
    #: What else there is to say, as sentences: what is still to come, and what is not known.
    notes: Sequence[str] = field(default_factory=list)


def make_timeline(
    events: Sequence[Event],
    parents: Mapping[int, int | None],
    notes: Sequence[str] = (),
) -> Timeline:
    """Events in order; `parents` says from which station each station's record came."""
    causes = _causes(events, parents)
    told = _tightened(events, causes)
    return Timeline(_sorted(told, causes), _skews(told, causes), notes)


def _causes(events: Sequence[Event], parents: Mapping[int, int | None]) -> list[list[int]]:
    """For each event the places of those that it follows from."""
    first: dict[tuple[object, ...], int] = {}
    for place in sorted(range(len(events)), key=lambda place: events[place].time_ms):
        event = events[place]
        first.setdefault((event.station, event.group, event.what), place)
    # What a group does again, after it went back say, nothing follows from.
    certain = [
        (place, event)
        for place, event in enumerate(events)
        if event.what in _COMMITS
        or event.what not in _BY_GROUP
        or first[event.station, event.group, event.what] == place
    ]
    return [
        [
            place
            for place, before in certain
            if before is not event and _comes_before(before, event, parents)
        ]
        for event in events
    ]


def _tightened(events: Sequence[Event], causes: Sequence[Sequence[int]]) -> list[Event]:
    """What is good to a second was no later than what followed from it, by the same clock."""
    told = list(events)
    for number in sorted(range(len(told)), key=lambda place: told[place].time_ms):
        for cause in causes[number]:
            before, event = told[cause], told[number]
            if before.clock != event.clock or before.time_ms <= event.time_ms:
                continue
            time_ms = event.time_ms
            if before.earliest_ms is not None:
                time_ms = max(time_ms, before.earliest_ms)
                within_ms = time_ms - before.earliest_ms
                told[cause] = replace(before, time_ms=time_ms, within_ms=within_ms)
            else:
                told[cause] = replace(before, time_ms=time_ms)
    return told


def _comes_before(before: Event, event: Event, parents: Mapping[int, int | None]) -> bool:
    if before.station == event.station:
        return _comes_before_here(before, event)
    if not _is_behind(event.station, before.station, parents):
        return False
    if before.what in _BY_GROUP:
        # A record is sent on by the group that had it, and by nobody else.
        return before.what in _IN_HAND and before.group == event.group
    return before.what in _BEFORE_ALL or before.what in _ARRIVALS or before.what is What.REPLICATED


def _comes_before_here(before: Event, event: Event) -> bool:
    if before.what in _COMMITS and event.what in _COMMITS:
        # They follow each other as they were told: a group that went back passes once more.
        return before.group == event.group and before.time_ms < event.time_ms
    if _RANKS[before.what] >= _RANKS[event.what]:
        return False
    if before.what in _BEFORE_ALL:
        return True
    if event.what in (What.ACKNOWLEDGED, What.FAILED):
        # With acks=1 it is acknowledged before it is replicated, and perhaps read by then.
        is_stored = event.what is What.ACKNOWLEDGED and before.what is What.APPENDED
        return is_stored or before.what is What.RETRIED
    if before.what in (What.RETRIED, What.ACKNOWLEDGED, What.FAILED):
        # The first request may have arrived, and only its answer was lost.
        return False
    if before.what is What.COMMITTED and event.what in _COMMITS:
        # The broker has the commit before the client hears so.
        return False
    if before.what in _BY_GROUP:
        return before.group == event.group
    if event.what in _BY_GROUP:
        # Some read what is not committed yet.
        return before.what in _ARRIVALS or before.what is What.REPLICATED
    return event.what is not What.RETRIED


def _is_behind(station: int, other: int, parents: Mapping[int, int | None]) -> bool:
    at: int | None = station
    for _ in range(len(parents)):
        at = None if at is None else parents.get(at)
        if at == other:
            return True
    return False


def _sorted(events: Sequence[Event], causes: Sequence[Sequence[int]]) -> list[Event]:
    """By time, but each behind its causes."""
    waits_for = [len(before) for before in causes]
    effects: list[list[int]] = [[] for _ in events]
    for number, before in enumerate(causes):
        for cause in before:
            effects[cause].append(number)
    ready = [_turn(events, number) for number, count in enumerate(waits_for) if count == 0]
    heapq.heapify(ready)
    ordered: list[Event] = []
    while ready:
        *_, number = heapq.heappop(ready)
        ordered.append(events[number])
        for effect in effects[number]:
            waits_for[effect] -= 1
            if waits_for[effect] == 0:
                heapq.heappush(ready, _turn(events, effect))
    return ordered


def _turn(events: Sequence[Event], number: int) -> tuple[int, int, int, int]:
    event = events[number]
    return event.time_ms, event.station, _RANKS[event.what], number


def _skews(events: Sequence[Event], causes: Sequence[Sequence[int]]) -> list[ClockSkew]:
    """Clocks that say that an effect was before its cause, as far as both are known exactly."""
    found: dict[tuple[str, str], int] = {}
    for event, before in zip(events, causes, strict=True):
        for cause in (events[number] for number in before):
            if cause.clock == event.clock or cause.earliest_ms is None:
                continue
            ahead_ms = cause.earliest_ms - event.time_ms
            if ahead_ms >= SKEW_MIN_MS:
                pair = (cause.clock, event.clock)
                found[pair] = max(found.get(pair, 0), ahead_ms)
    return [ClockSkew(*pair, ahead_ms) for pair, ahead_ms in sorted(found.items())]
