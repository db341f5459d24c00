"""Where reading begins or ends, as options say it: a place, offsets, or times.

A timestamp for all partitions goes before timestamps for each, and those before offsets, as in
Spark's own connector. Nothing here asks a broker; `position_lookup` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headwater.base.errors import InvalidTopicError
from headwater.base.ids import PARTITION_MAX, TopicPartition, validate_topic_name
from headwater.pipeline.connector.option_table import (
    OptionError,
    choice_option,
    integer_option,
)

#: What stand for a place among offsets.
LATEST_OFFSET: Final = -1
EARLIEST_OFFSET: Final = -2


class Place(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    #: Where a group has committed.
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class GivenOffsets:
    """An offset for each partition; -1 is the latest, -2 the earliest."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GivenTimes:
    """A time in milliseconds for each partition."""

    times_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GivenTime:
    """One time in milliseconds for all partitions."""

    time_ms: int


Position = Place | GivenOffsets | GivenTimes | GivenTime


def starting_position(options: Mapping[str, str], *, is_stream: bool) -> Position:
    """Where the options let reading begin."""
    default = Place.LATEST if is_stream else Place.EARLIEST
    position = _position(options, "starting", [place.value for place in Place], default)
    if not is_stream:
        if position is Place.LATEST:
            raise OptionError(
                "The option 'startingOffsets' cannot be 'latest' in a batch query, which would "
                "read nothing: use earliest, group, offsets or a timestamp."
            )
        _refuse_offset(position, "startingOffsets", LATEST_OFFSET, "the latest", "begin")
    return position


def ending_position(options: Mapping[str, str]) -> Position:
    """Where the options let a batch query end."""
    position = _position(options, "ending", [Place.LATEST.value], Place.LATEST)
    _refuse_offset(position, "endingOffsets", EARLIEST_OFFSET, "the earliest", "end")
    return position


def parse_assignment(text: str) -> list[TopicPartition]:
    """The partitions of the option `assign`."""
    try:
        topics = json.loads(text)
        partitions = [
            TopicPartition(_topic(topic), _partition(number))
            for topic, numbers in topics.items()
            for number in numbers
        ]
    except (ValueError, TypeError, AttributeError, InvalidTopicError):
        partitions = []
    if not partitions:
        raise OptionError(
            f"The option 'assign' cannot be {text!r}: it must be the partitions of topics as JSON, "
            'such as {"orders": [0, 1]}.'
        )
    return sorted(set(partitions))


def _position(
    options: Mapping[str, str], begin: str, places: list[str], default: Position
) -> Position:
    by_name = {name.lower(): value for name, value in options.items()}
    name = f"{begin}Timestamp"
    if (text := by_name.get(name.lower())) is not None:
        return GivenTime(integer_option(name, text, lower=0))
    name = f"{begin}OffsetsByTimestamp"
    if (text := by_name.get(name.lower())) is not None:
        return GivenTimes(_numbers(name, text, lower=0))
    name = f"{begin}Offsets"
    text = by_name.get(name.lower())
    if text is None:
        return default
    if text.lstrip().startswith("{"):
        return GivenOffsets(_numbers(name, text, lower=EARLIEST_OFFSET))
    try:
        return Place(choice_option(name, text, places))
    except OptionError as error:
        if str(error).endswith("'?"):
            raise
        raise OptionError(
            f"The option '{name}' cannot be {text!r}: it must be {' or '.join(places)}, or offsets "
            'as JSON, such as {"orders": {"0": 23}}.'
        ) from None


def _numbers(name: str, text: str, lower: int) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(_topic(topic), _partition(number)): _at_least(lower, value)
            for topic, numbers in json.loads(text).items()
            for number, value in numbers.items()
        }
    except (ValueError, TypeError, AttributeError, InvalidTopicError):
        raise OptionError(
            f"The option '{name}' cannot be {text!r}: it must have a whole number of at least "
            f'{lower} for each partition, as JSON, such as {{"orders": {{"0": 23, "1": 42}}}}.'
        ) from None


def _topic(name: str) -> str:
    validate_topic_name(name)
    return name


def _partition(number: object) -> int:
    if not isinstance(number, int | str) or isinstance(number, bool):
        raise TypeError
    partition = int(number)
    if not 0 <= partition <= PARTITION_MAX:
        raise ValueError
    return partition


def _at_least(lower: int, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < lower:
        raise ValueError
    return value


def _refuse_offset(position: Position, name: str, offset: int, what: str, verb: str) -> None:
    if isinstance(position, GivenOffsets) and offset in position.offsets.values():
        raise OptionError(
            f"The option '{name}' cannot have {offset}, {what} offset, in a batch query: there is "
            f"nothing to {verb} with."
        )
