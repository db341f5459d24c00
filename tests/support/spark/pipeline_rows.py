"""Events for pipelines of tests, and what comes of them, calculated in plain Python.

An event is late by less than the watermark's delay, and then counts, or by far more, and then does
not: which of those in between count depends on where batches end, which is nobody's promise.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

BEGIN_S = 1_767_225_600  # 2026-01-01T00:00:00Z
DELAY_S = 10
FAR_S = 3_600

Totals: TypeAlias = dict[tuple[int, str], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Event:
    """`time_s` is whole seconds since 1970; `is_late` events are far behind the watermark."""

    number: int
    who: str
    amount: int
    time_s: int
    is_late: bool = False

    def value(self) -> bytes:
        return json.dumps(
            {"number": self.number, "who": self.who, "amount": self.amount, "time_s": self.time_s}
        ).encode()


def make_events(seed: int, count: int, late_from: int) -> list[Event]:
    """Events a second apart on average, one customer with most of them, some that come twice."""
    generator = random.Random(seed)
    events: list[Event] = []
    now_s = BEGIN_S
    for number in range(count):
        now_s += generator.choice([0, 0, 1, 1, 1, 2]) + (40 if generator.random() < 0.04 else 0)
        who = "ann" if generator.random() < 0.7 else generator.choice(["bo", "cy", "di"])
        amount = generator.randrange(1, 100)
        late = number >= late_from and generator.random() < 0.1
        behind_s = FAR_S if late else generator.randrange(DELAY_S - 2)
        events.append(Event(number, who, amount, now_s - behind_s, late))
        if generator.random() < 0.1:
            events.append(events[-1])
    return events[:count]


def tumbling(events: Iterable[Event], width_s: int, slide_s: int | None = None) -> Totals:
    """Count and sum by window's begin and customer; windows overlap if they slide."""
    slide_s = slide_s or width_s
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for event in events:
        begin_s = event.time_s - event.time_s % slide_s
        while begin_s > event.time_s - width_s:
            found[begin_s, event.who].append(event.amount)
            begin_s -= slide_s
    return {key: (len(amounts), sum(amounts)) for key, amounts in found.items()}


def sessions(events: Iterable[Event], gap_s: int) -> dict[tuple[int, int, str], int]:
    """Count by begin, end and customer of runs of events not more than a gap apart."""
    by_customer: dict[str, list[int]] = defaultdict(list)
    for event in events:
        by_customer[event.who].append(event.time_s)
    found: dict[tuple[int, int, str], int] = {}
    for who, times in by_customer.items():
        run: list[int] = []
        for time_s in sorted(times):
            # An event just at the end of a session belongs to it, as Spark has it.
            if run and time_s > run[-1] + gap_s:
                found[run[0], run[-1] + gap_s, who] = len(run)
                run = []
            run.append(time_s)
        found[run[0], run[-1] + gap_s, who] = len(run)
    return found


def joined(
    left: Sequence[Event], right: Sequence[Event], within_s: int
) -> set[tuple[int, int, int]]:
    """Number, left and right amount of events with one number, the right one soon after."""
    by_number: dict[int, set[Event]] = defaultdict(set)
    for event in right:
        by_number[event.number].add(event)
    return {
        (event.number, event.amount, other.amount)
        for event in left
        for other in by_number[event.number]
        if event.time_s <= other.time_s <= event.time_s + within_s
    }
