"""Rules about a topic's book: what a rule looks at, and from which value on it fires.

    missing                      one record is enough
    behind > 1000 topic=orders
    late > 1%
    latency > 30s group=billing

Sans-io. What depends on time being over, `late` and `behind`, looks only at buckets that ended a
buffer ago: what came just now may still be on its way to a group, or to `__audit`. The others are
true as soon as they are seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.audit.group_sum import GroupSum
from headwater.audit.topic_book import TopicBook
from headwater.base.durations import parse_duration_ms, show_duration
from headwater.base.properties_file import read_properties_file
from headwater.base.setting import SettingError

#: What rules look at: of a topic, and of each of its groups.
TOPIC_FIGURES: Final = ("lost", "gaps", "late", "uncounted")
GROUP_FIGURES: Final = ("missing", "doubled", "latency", "behind")
FIGURES: Final = GROUP_FIGURES + TOPIC_FIGURES
#: These say nothing of what they are compared with unless a rule does.
_NEEDS_LIMIT: Final = ("late", "latency", "behind")

_RULE: Final = re.compile(
    r"\s*(?P<figure>[a-z]+)\s*(?:>\s*(?P<limit>[0-9][0-9a-z.]*%?))?(?P<names>(?:\s+\w+=\S+)*)\s*"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """It fires where the figure is above the limit: records, a share, or milliseconds."""

    name: str
    figure: str
    limit: float = 0.0
    #: Only for this topic, or this group; None for all.
    topic: str | None = None
    group: str | None = None

    @property
    def text(self) -> str:
        return f"{self.figure} > {show_value(self.figure, self.limit)}"


#: What is watched if nothing was said: what should never happen.
DEFAULT_RULES: Final = tuple(
    Rule(name, name) for name in ("missing", "doubled", "lost", "gaps", "uncounted")
)


class Place(NamedTuple):
    """Which rule was looked at where; the group is empty for a figure of the topic."""

    rule: str
    topic: str
    group: str


class Reading(NamedTuple):
    """What a rule found."""

    place: Place
    rule: Rule
    value: float

    @property
    def fires(self) -> bool:
        return self.value > self.rule.limit


def parse_rule(text: str, name: str | None = None) -> Rule:
    """The rule that a text stands for; raises `SettingError`, with a sentence."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise SettingError(f"{text!r} is no rule, such as 'behind > 1000 topic=orders'.")
    figure = match["figure"]
    if figure not in FIGURES:
        raise SettingError(f"There is no figure {figure!r}; there are {', '.join(FIGURES)}.")
    if match["limit"] is None and figure in _NEEDS_LIMIT:
        raise SettingError(f"A rule about {figure!r} needs a limit, as in '{figure} > 10'.")
    names = dict(part.split("=", 1) for part in match["names"].split())
    if unknown := names.keys() - {"topic", "group"}:
        raise SettingError(f"A rule is about a topic or a group, not about a {min(unknown)!r}.")
    if "group" in names and figure in TOPIC_FIGURES:
        raise SettingError(f"The figure {figure!r} is a topic's, and the same for all groups.")
    limit = _limit(figure, match["limit"] or "0")
    return Rule(name or text.strip(), figure, limit, names.get("topic"), names.get("group"))


def read_rules_file(text: str, source: str) -> list[Rule]:
    """Rules by name, as `slow = latency > 30s`; raises `SettingError`."""
    return [parse_rule(rule, name) for name, rule in read_properties_file(text, source).items()]


def _limit(figure: str, text: str) -> float:
    try:
        if figure == "latency":
            return parse_duration_ms(text)
        if figure == "late" and text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text)
    except ValueError:
        raise SettingError(f"{text!r} is nothing that {figure!r} could be above.") from None


def show_value(figure: str, value: float) -> str:
    """A figure's value as people read it."""
    if figure == "latency":
        return show_duration(int(value))
    if figure == "late":
        return f"{value * 100:g}%"
    return f"{value:g}"


def read_book_by(
    rules: Mapping[str, Rule], book: TopicBook, now_ms: int, buffer_ms: int
) -> Iterator[Reading]:
    """What the rules say of a topic."""
    before_ms = now_ms - buffer_ms
    for rule in rules.values():
        if rule.topic not in (None, book.topic):
            continue
        if rule.figure in TOPIC_FIGURES:
            value = _topic_value(rule.figure, book, before_ms)
            yield Reading(Place(rule.name, book.topic, ""), rule, value)
            continue
        for group in book.groups:
            if rule.group in (None, group.group):
                value = _group_value(rule.figure, book, group, before_ms)
                yield Reading(Place(rule.name, book.topic, group.group), rule, value)


def _topic_value(figure: str, book: TopicBook, before_ms: int) -> float:
    if figure == "lost":
        return book.lost_count
    if figure == "gaps":
        return book.gaps_refused
    if figure == "uncounted":
        return book.uncounted_offsets
    over = [bucket for bucket in book.buckets if bucket.end_ms <= before_ms]
    count = sum(bucket.count for bucket in over)
    return sum(bucket.late_count for bucket in over) / count if count else 0.0


def _group_value(figure: str, book: TopicBook, group: GroupSum, before_ms: int) -> float:
    if figure == "missing":
        return group.missing_count
    if figure == "doubled":
        return group.doubled_count
    if figure == "latency":
        return group.latency_ms_max or 0
    behind = sum(
        bucket.stored_count
        - group.out_by_bucket.get(bucket.start_ms, 0)
        - group.missing_by_bucket.get(bucket.start_ms, 0)
        for bucket in book.buckets
        if bucket.end_ms <= before_ms
    )
    return max(behind, 0)
