"""Rules: how they are written, what they look at, and when they begin and cease to fire."""

import pytest

from headwater.audit.group_sum import GroupSum
from headwater.audit.topic_book import BucketSum, TopicBook
from headwater.base.setting import SettingError
from headwater.cli.audit.watch.alarms import AlarmBoard, AlarmEvent
from headwater.cli.audit.watch.rules import (
    Place,
    Reading,
    Rule,
    parse_rule,
    read_book_by,
    read_rules_file,
)

MINUTE_MS = 60_000
NOW_MS = 100 * MINUTE_MS


def a_book() -> TopicBook:
    """Two buckets that are over for long, and one that ended just now."""
    buckets = [
        BucketSum(start_ms, start_ms + MINUTE_MS, count=100, aborted_count=10, late_count=late)
        for start_ms, late in ((90 * MINUTE_MS, 3), (91 * MINUTE_MS, 1), (99 * MINUTE_MS, 50))
    ]
    out = {90 * MINUTE_MS: 90, 91 * MINUTE_MS: 60}
    buckets[-1].lost_count = 2
    missing = {91 * MINUTE_MS: 7}
    billing = GroupSum(
        *("billing", 150, 7, 5), latency_ms_max=4_000, out_by_bucket=out, missing_by_bucket=missing
    )
    return TopicBook("orders", buckets, [billing, GroupSum("other")], 0, 9, 2, 4)


def value(text: str, buffer_ms: int = 2 * MINUTE_MS) -> dict[str, float]:
    rules = {"it": parse_rule(text, "it")}
    found = read_book_by(rules, a_book(), NOW_MS, buffer_ms)
    return {each.place.group: each.value for each in found}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("missing", {"billing": 7, "other": 0}),
        ("doubled > 4 group=billing", {"billing": 5}),
        ("latency > 1s", {"billing": 4_000, "other": 0}),
        # 90 + 90 stored, 150 out, 7 missing; what came just now is not counted.
        ("behind > 10", {"billing": 23, "other": 180}),
        ("lost", {"": 2}),
        ("gaps", {"": 2}),
        ("uncounted", {"": 4}),
        ("late > 1%", {"": 0.02}),
        ("late > 1% topic=payments", {}),
    ],
)
def test_a_rule_looks_at_its_figure(text: str, found: dict[str, float]) -> None:
    assert value(text) == found


def test_without_a_buffer_what_came_just_now_counts() -> None:
    assert value("behind > 10", 0) == {"billing": 111, "other": 268}
    assert value("late > 1%", 0) == {"": 0.18}


def test_a_rule_fires_above_its_limit() -> None:
    rule = parse_rule("late > 1.5%")
    assert rule == Rule("late > 1.5%", "late", 0.015)
    assert not Reading(Place("it", "orders", ""), rule, 0.015).fires
    assert Reading(Place("it", "orders", ""), rule, 0.016).fires
    assert parse_rule("latency>2m").limit == 120_000


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "lots", "missing < 3", "missing > many", "behind", "late > x%", "latency > 3x"),
        *("missing > 3 host=a", "late > 1% group=billing", "missing >", "gaps > 1 topic="),
    ],
)
def test_what_is_no_rule_is_said_in_a_sentence(wrong: str) -> None:
    with pytest.raises(SettingError, match=r"\.$"):
        parse_rule(wrong)


def test_a_file_has_rules_by_name() -> None:
    rules = read_rules_file("# ours\nslow = latency > 30s\nany=missing topic=orders\n", "the file")
    assert rules == [Rule("slow", "latency", 30_000), Rule("any", "missing", topic="orders")]


def reading(amount: float, group: str = "billing") -> Reading:
    return Reading(Place("it", "orders", group), Rule("it", "missing", 3), amount)


def kinds(events: list[AlarmEvent]) -> list[tuple[str, str, float]]:
    return [(each.kind, each.reading.place.group, each.reading.value) for each in events]


def test_an_alarm_begins_once_and_ends_once() -> None:
    board = AlarmBoard()
    assert board.update([reading(3)], 1) == []
    assert kinds(board.update([reading(4), reading(9, "other")], 2)) == [
        ("begin", "billing", 4),
        ("begin", "other", 9),
    ]
    assert board.update([reading(5), reading(9, "other")], 3) == []
    # One is well again, and the other group is gone.
    ended = board.update([reading(2)], 4)
    assert kinds(ended) == [("end", "billing", 2), ("end", "other", 9)]
    assert [(each.time_ms, each.since_ms) for each in ended] == [(4, 2), (4, 2)]
    assert kinds(board.update([reading(6)], 5)) == [("begin", "billing", 6)]


def test_an_event_tells_all_of_it() -> None:
    [event] = AlarmBoard().update([reading(4)], 7)
    assert event.to_json() == {
        "version": 1,
        "event": "begin",
        "time": 7,
        "since": 7,
        "rule": "it",
        "figure": "missing",
        "limit": 3,
        "value": 4,
        "topic": "orders",
        "group": "billing",
        "message": "missing is 4 for orders, group billing (rule it: above 3)",
    }
