"""Delay levels: where a producer has to write what a delay service forwards later.

A delay service has a topic for each of a few delays, its levels, and forwards what is written there
when the level's time is over. A record of a level topic says in a header which topic it is for:

    topic       __delay_30s
    headers     headwater-topic: orders         where it is to arrive
                headwater-partition: 3          optional: in which partition
                and those that are to arrive with it

Any other delay is forced up to the next level, so the error is less than the step between two
levels: 17 s becomes 30 s, which is 13 s too late. Everything here is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from headwater.base.durations import parse_duration_ms, show_duration
from headwater.base.ids import DELAY_TOPIC_PREFIX, validate_topic_name

if TYPE_CHECKING:
    from headwater.wire.records import Header

#: Where a record is to arrive. Of several headers of the name the last one counts.
TOPIC_HEADER: Final = "headwater-topic"
PARTITION_HEADER: Final = "headwater-partition"

LEVELS_TEXT: Final = "5s,10s,30s,1m,2m,5m,10m,20m,30m,45m,1h,2h"
#: A partition is held for so long at most that its topic's retention fits a number of 64 bits.
_LEVEL_MS_MAX: Final = 366 * 86_400_000
_LEVEL_COUNT_MAX: Final = 100


class Level(NamedTuple):
    """A delay, with a topic of its own. Its name is the shortest that means this delay."""

    delay_ms: int

    @property
    def name(self) -> str:
        return show_duration(self.delay_ms)

    @property
    def topic(self) -> str:
        return f"{DELAY_TOPIC_PREFIX}{self.name}"


class LevelRecord(NamedTuple):
    """What a producer writes for a record that is to arrive later."""

    topic: str
    headers: tuple[Header, ...]
    #: How much later than asked for it arrives.
    error_ms: int


def parse_levels(text: str) -> tuple[Level, ...]:
    """The levels that a text such as `5s,30s,1m` lists, rising; `ValueError` with a sentence."""
    levels = []
    for part in text.split(","):
        delay_ms = parse_duration_ms(part)
        if not 0 < delay_ms <= _LEVEL_MS_MAX:
            raise ValueError(f"The level {part.strip()!r} is not between 1ms and 366d.")
        levels.append(Level(delay_ms))
    if levels != sorted(set(levels)):
        raise ValueError(f"The levels {text!r} do not rise: each must be longer than the last.")
    if len(levels) > _LEVEL_COUNT_MAX:
        raise ValueError(f"There are {len(levels)} levels, and at most {_LEVEL_COUNT_MAX} can be.")
    return tuple(levels)


LEVELS: Final = parse_levels(LEVELS_TEXT)


def levels_among(topics: Iterable[str]) -> tuple[Level, ...]:
    """The levels, rising, whose topics are among these."""
    found = set()
    for topic in topics:
        if topic.startswith(DELAY_TOPIC_PREFIX):
            try:
                level = Level(parse_duration_ms(topic.removeprefix(DELAY_TOPIC_PREFIX)))
            except ValueError:
                continue  # Such as the topic of what could not be forwarded.
            # Other spellings of a delay are topics that nobody forwards from.
            if level.topic == topic and 0 < level.delay_ms <= _LEVEL_MS_MAX:
                found.add(level)
    return tuple(sorted(found))


def level_for(delay_ms: int, levels: Sequence[Level] = LEVELS) -> Level:
    """The shortest of the rising levels that is not shorter than the delay.

    Raises `ValueError` with a sentence if there is none.
    """
    if delay_ms < 0:
        raise ValueError(f"A delay cannot be negative, and this one is {delay_ms} ms.")
    for level in levels:
        if level.delay_ms >= delay_ms:
            return level
    raise ValueError(
        f"A delay of {show_duration(delay_ms)} is longer than the longest level, {levels[-1].name}."
        if levels
        else "There is no delay level."
    )


def level_record(
    topic: str,
    delay_ms: int,
    headers: Sequence[Header] = (),
    *,
    partition: int | None = None,
    levels: Sequence[Level] = LEVELS,
) -> LevelRecord:
    """Where to write a record, and with which headers, so that it arrives so much later.

    Key, value and the other headers stay as they are. Its partition in the level topic is free to
    choose; with the key's, records of one key keep their order.
    """
    validate_topic_name(topic)
    level = level_for(delay_ms, levels)
    added: list[Header] = [(TOPIC_HEADER, topic.encode())]
    if partition is not None:
        added.append((PARTITION_HEADER, str(partition).encode()))
    return LevelRecord(level.topic, (*headers, *added), level.delay_ms - delay_ms)
