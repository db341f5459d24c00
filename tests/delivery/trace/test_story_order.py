"""Whatever clocks say and whatever was lost: nothing is out of order, and nothing is invented."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headwater.audit.rows import Row
from headwater.client.tracing.trace_step import TraceStep
from headwater.delivery.trace.event import Event, Source
from headwater.delivery.trace.story import tell
from headwater.delivery.trace.timeline import SKEW_MIN_MS
from tests.support.traces.made_up import (
    audited,
    group_row,
    log_row,
    ms,
    station,
    step,
    traceparent,
)

PLACE = "orders-0@1234"
GROUPS = ("billing", "mails")
PRODUCED = ("created", "sent", "retried", "retried", "acknowledged")
HANDLED = ("fetched", "handled", "committed")


class World(NamedTuple):
    """What happened, as it is written down: clocks are off, and some of it is lost."""

    steps: list[TraceStep]
    rows: list[Row]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    pauses = st.floats(0, 3)
    off = {
        host: draw(st.sampled_from((0.0, 0.0, 0.003, -2.0, 5.0)))
        for host in ("shop-1", "broker", *GROUPS)
    }
    second = 10.0
    steps: list[TraceStep] = []
    for number, name in enumerate(PRODUCED):
        place = PLACE if name == "acknowledged" else None
        attempt = number if name == "retried" else None
        steps.append(step(name, second + off["shop-1"], place, attempt=attempt))
        second += draw(pauses)
    # It was stored by one of the requests, and then told.
    stored = 10.0 + (second - 10.0) * draw(st.floats(0.1, 0.5)) + off["broker"]
    rows = [
        log_row(PLACE, (stored - 0.5, 1234, 1234), (stored, 1235, 1234), (stored + 0.5, 1235, 1235))
    ]
    for group in GROUPS:
        at = max(second, stored + 0.5 - off["broker"])
        for name in HANDLED:
            at += draw(pauses)
            steps.append(step(name, at + off[group], PLACE, host=group, group=group))
        rows.append(group_row(PLACE, group, (at + off["broker"], 1235)))
    kept = [each for each in draw(st.permutations(steps)) if draw(st.integers(0, 4))]
    return World(kept, [each for each in rows if draw(st.integers(0, 4))])


def is_in_order(events: list[Event], names: tuple[str, ...]) -> bool:
    told = [event.what.value for event in events if event.what.value in names]
    return told == sorted(told, key=names.index)


@given(worlds())
def test_nothing_is_out_of_order_or_invented(world: World) -> None:
    known = audited(station(PLACE, 10, traceparent()), *world.rows)
    timeline = tell([known], world.steps)
    events = list(timeline.events)
    written = Counter((each.step, each.time_ms) for each in world.steps)
    told = Counter(
        (event.what.value, event.time_ms) for event in events if event.source is Source.WRITTEN
    )
    assert told == written, "each step is told once, with its own time"
    others = {event.what.value for event in events if event.source is not Source.WRITTEN}
    assert others <= {"created", "appended", "replicated", "passed"}
    mine = [event for event in events if event.group is None]
    assert is_in_order(mine, ("created", "sent", "retried"))
    assert is_in_order(mine, ("created", "appended", "replicated"))
    assert is_in_order(mine, ("created", "sent", "acknowledged"))
    assert is_in_order(mine, ("appended", "acknowledged"))
    for group in GROUPS:
        theirs = [event for event in events if event.group in (None, group)]
        assert is_in_order(theirs, ("created", "appended", "replicated", *HANDLED))
        assert is_in_order(theirs, ("replicated", "fetched", "passed"))
    for skew in timeline.skews:
        assert skew.clock != skew.other
        assert skew.ahead_ms >= SKEW_MIN_MS


@given(worlds())
def test_where_all_clocks_agree_the_order_is_that_of_time(world: World) -> None:
    steps = [each for each in world.steps if each.host == "shop-1"]
    events = tell([station(PLACE, 10, traceparent())], steps).events
    times = [event.time_ms for event in events if event.source is Source.WRITTEN]
    assert times == sorted(times)
    assert ms(10) - 2_000 <= min(times, default=ms(10))
