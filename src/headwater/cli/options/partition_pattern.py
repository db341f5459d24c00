"""Partitions chosen by patterns like `orders:0-2,pay.*`, as Kafka's get-offsets takes them.

Each pattern is a regular expression for the topic's whole name, empty for any, and after a colon
one partition (`3`), a range without its end (`0-2`, `5-`, `-3`), or nothing for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

import typer

from headwater.base.ids import TopicPartition
from headwater.cli.options.topic_pattern import compile_pattern

_PATTERN: Final = re.compile(r"([^:,]*)(?::(?:([0-9]+)|([0-9]*)-([0-9]*))?)?", re.ASCII)

Accepts = Callable[[TopicPartition], bool]


def parse_partition_patterns(text: str) -> Accepts:
    """Whether a partition is chosen by any of the patterns."""
    accepts = [_parse(part.strip()) for part in text.split(",")]
    return lambda partition: any(accept(partition) for accept in accepts)


def accept_topics_and_numbers(topic: str | None, numbers: str | None) -> Accepts:
    """Partitions of the topics that match, with one of the numbers if there are any."""
    pattern = None if topic is None else compile_pattern(topic)
    wanted = None if numbers is None else frozenset(_numbers(numbers.split(",")))

    def accept(partition: TopicPartition) -> bool:
        is_named = pattern is None or pattern.fullmatch(partition.topic) is not None
        return is_named and (wanted is None or partition.partition in wanted)

    return accept


def _parse(text: str) -> Accepts:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise typer.BadParameter(
            f"{text!r} should be like topic, topic:1, topic:0-3, topic:5- or topic:-3",
            param_hint="--topic-partitions",
        )
    name, number, first, end = match.groups()
    pattern = compile_pattern(name or ".*")
    lowest = int(number or first or 0)
    beyond = int(number) + 1 if number else int(end) if end else None

    def accept(partition: TopicPartition) -> bool:
        is_low_enough = beyond is None or partition.partition < beyond
        return (
            partition.partition >= lowest
            and is_low_enough
            and pattern.fullmatch(partition.topic) is not None
        )

    return accept


def _numbers(texts: Iterable[str]) -> list[int]:
    try:
        return [int(text) for text in texts]
    except ValueError:
        raise typer.BadParameter(
            "should be numbers with commas", param_hint="--partitions"
        ) from None
