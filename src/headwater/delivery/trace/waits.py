"""The waits between the events of a timeline, each with a name and a sentence.

A wait is as exact as the two times that it lies between. Where these are of different clocks that
disagree, a wait may come out as nothing; it is never less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from headwater.delivery.trace.event import Event, What
from headwater.delivery.trace.lengths import said


class Wait(NamedTuple):
    """Between two events, by their places in the timeline."""

    name: str
    from_event: int
    to_event: int
    duration_ms: int
    #: By so much it may be longer or shorter; None if nobody knows.
    within_ms: int | None
    text: str


class _Rule(NamedTuple):
    """From the last of the first kinds that there is, to the event."""

    name: str
    begins: tuple[What, ...]
    ends: What
    sentence: Callable[[str, Event], str]
    #: Whether both are of one group.
    of_group: bool = False
    #: Whether it began where the record came from.
    from_parent: bool = False


def _lag(length: str, event: Event) -> str:
    return f"{length} of lag in {event.group}"


_STORED: Final = (What.DELIVERED, What.DEAD_LETTER, What.SENT_BACK, What.REPLICATED, What.APPENDED)

#: The first rule that fits an event tells its wait.
_RULES: Final = (
    _Rule("producer", (What.CREATED,), What.SENT, lambda length, _: f"{length} in the producer"),
    _Rule(
        "sending",
        (What.SENT, What.CREATED),
        What.APPENDED,
        lambda length, _: f"{length} on the way to the broker",
    ),
    _Rule(
        "replication",
        (What.APPENDED,),
        What.REPLICATED,
        lambda length, _: f"waited {length} for replication",
    ),
    _Rule(
        "acknowledgement",
        (What.SENT, What.CREATED),
        What.ACKNOWLEDGED,
        lambda length, _: f"waited {length} for the acknowledgement",
    ),
    _Rule(
        "transaction",
        (What.APPENDED, What.CREATED),
        What.TRANSACTION_COMMITTED,
        lambda length, _: f"waited {length} for its transaction to end",
    ),
    _Rule(
        "transaction",
        (What.APPENDED, What.CREATED),
        What.TRANSACTION_ABORTED,
        lambda length, _: f"waited {length} for its transaction to end",
    ),
    _Rule(
        "handling", (What.FETCHED,), What.HANDLED, lambda length, _: f"handled for {length}", True
    ),
    _Rule(
        "handling",
        (What.FETCHED,),
        What.NOT_HANDLED,
        lambda length, _: f"handled in vain for {length}",
        of_group=True,
    ),
    _Rule(
        "commit",
        (What.NOT_HANDLED, What.HANDLED, What.FETCHED),
        What.COMMITTED,
        lambda length, _: f"waited {length} for the commit",
        of_group=True,
    ),
    _Rule(
        "moving",
        (What.SENT_ON,),
        What.DEAD_LETTER,
        lambda length, _: f"waited {length} for being moved to the dead-letter topic",
        of_group=True,
        from_parent=True,
    ),
    _Rule("lag", _STORED, What.FETCHED, _lag),
    _Rule("lag", _STORED, What.SENT_ON, _lag),
    _Rule("lag", _STORED, What.PASSED, _lag),
    _Rule(
        "retry",
        (What.SENT_ON,),
        What.DELIVERED,
        lambda length, event: (
            f"retry {event.attempt} after {length}"
            if event.attempt
            else f"tried again after {length}"
        ),
        True,
        True,
    ),
    _Rule(
        "dead letter",
        (What.DEAD_LETTER,),
        What.SENT_BACK,
        lambda length, _: f"lay {length} as a dead letter",
        from_parent=True,
    ),
)


def waits_of(events: Sequence[Event], parents: dict[int, int | None]) -> list[Wait]:
    """The waits that end with these events, in their order."""
    return [
        wait
        for number, event in enumerate(events)
        if (wait := _wait(events, number, event, parents)) is not None
    ]


def _wait(
    events: Sequence[Event], number: int, event: Event, parents: dict[int, int | None]
) -> Wait | None:
    if event.what is What.DELIVERED and event.group is None:
        return _delay(events, number, event)
    for rule in _RULES:
        if rule.ends is not event.what or (rule.name == "lag" and _is_known(events, number)):
            continue
        station = parents.get(event.station) if rule.from_parent else event.station
        if station is None:
            continue
        group = event.group if rule.of_group else None
        for begin in _begins(events, number, rule.begins, station, group):
            if events[begin].within_ms is None and event.within_ms is None:
                return None  # Both were then or earlier: that tells nothing.
            return _between(events, begin, number, rule)
    return None


def _delay(events: Sequence[Event], number: int, event: Event) -> Wait | None:
    """Of a delayed message: as long as was asked for, or until the time that it was given."""
    begin = next(_begins(events, number, (What.APPENDED, What.CREATED), event.station), None)
    due_ms, asked_ms = event.details.get("due_ms"), event.details.get("asked_ms")
    if begin is None or not isinstance(due_ms, int):
        return None
    if isinstance(asked_ms, int):
        return Wait(
            "delay", begin, number, asked_ms, 0, f"waited {said(asked_ms)} as asked (delay)"
        )
    before = events[begin]
    duration_ms = max(due_ms - before.time_ms, 0)
    text = f"waited {said(duration_ms)} until its time (delay)"
    return Wait("delay", begin, number, duration_ms, before.within_ms, text)


def _is_known(events: Sequence[Event], number: int) -> bool:
    """Whether the group had the record before that: its lag is told once."""
    event = events[number]
    return any(
        (before.station, before.group) == (event.station, event.group)
        for before in events[:number]
        if before.what in (What.FETCHED, What.SENT_ON, What.PASSED, What.COMMITTED)
    )


def _begins(
    events: Sequence[Event],
    number: int,
    kinds: tuple[What, ...],
    station: int,
    group: str | None = None,
) -> Iterator[int]:
    """The nearest event in front, of the first kind that there is."""
    for kind in kinds:
        for place in range(number - 1, -1, -1):
            before = events[place]
            if (
                before.what is kind
                and before.station == station
                and (group is None or before.group == group)
            ):
                yield place
                break


def _between(events: Sequence[Event], begin: int, end: int, rule: _Rule) -> Wait:
    before, event = events[begin], events[end]
    due_ms = event.details.get("due_ms")
    if rule.name == "retry" and isinstance(due_ms, int):
        # It is shown when it is due: that is exact.
        duration_ms = max(due_ms - before.time_ms, 0)
        return Wait(rule.name, begin, end, duration_ms, 0, rule.sentence(said(duration_ms), event))
    duration_ms = max(event.time_ms - before.time_ms, 0)
    within_ms = None
    if before.within_ms is not None and event.within_ms is not None:
        within_ms = before.within_ms + event.within_ms
    length = said(duration_ms)
    if before.within_ms is not None and within_ms is not None and duration_ms < within_ms:
        length = f"at most {said(duration_ms + before.within_ms)}"
    elif event.within_ms is None:
        length = f"at most {length}"
    elif before.within_ms is None:
        length = f"at least {length}"
    return Wait(rule.name, begin, end, duration_ms, within_ms, rule.sentence(length, event))
