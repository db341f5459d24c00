"""Partitioners: which partition of its topic a record goes to, if its sender does not say.

A partitioner is a function, or an object that can be called like one, of a `PartitionQuestion`. The
default one is special in that it knows of batches: records without a key stay with a partition
until that has got a batch's worth of them, which is what `TopicRoute` is for.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from headwater.client.partitioner import partition_for_key


class PartitionQuestion(NamedTuple):
    """A record that needs a partition, and those there are."""

    topic: str
    #: What the program gave, and what its serializers made of it.
    key: Any
    key_bytes: bytes | None
    value: Any
    value_bytes: bytes | None
    partition_count: int
    #: Those that have a leader at the moment, or all if none has.
    available: Sequence[int]


#: Returns a partition's number, or None to leave it to the default partitioner.
Partitioner: TypeAlias = Callable[[PartitionQuestion], int | None]
#: What a producer can be given: a class is made an object of.
PartitionerLike: TypeAlias = Partitioner | type[Any]


class DefaultPartitioner:
    """By the hash of the key as in Java's client; without a key, batch after batch."""

    def __call__(self, question: PartitionQuestion) -> int | None:
        if question.key_bytes is None:
            return None
        return partition_for_key(question.key_bytes, question.partition_count)


class RoundRobinPartitioner:
    """One after the other, whatever the key, for each topic."""

    def __init__(self) -> None:
        self._counters: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)

    def __call__(self, question: PartitionQuestion) -> int:
        # A counter's next number is given out once, also to threads that ask at the same time.
        return question.available[next(self._counters[question.topic]) % len(question.available)]


class RandomPartitioner:
    """Any, whatever the key."""

    def __init__(self, generator: random.Random | None = None) -> None:
        self._generator = generator or random.Random()

    def __call__(self, question: PartitionQuestion) -> int:
        return self._generator.choice(question.available)


def make_partitioner(given: PartitionerLike | None) -> Partitioner | None:
    """The partitioner to call; None where the default one will do."""
    if isinstance(given, type):
        given = given()
    if given is None or type(given) is DefaultPartitioner:
        return None
    if not callable(given):
        raise TypeError(f"The partitioner {given!r} must be a function.")
    return given
