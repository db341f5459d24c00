"""Partitions by topic id: what a member of a consumer group has, gives up, or shall have.

An assignment holds no topic without partitions, so that two of them are equal exactly if they name
the same partitions.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from headwater.cluster.image.image import ClusterImage

#: Never changed in place; whoever wants another one makes it.
Assignment = Mapping[uuid.UUID, frozenset[int]]

NOTHING: Final[Assignment] = MappingProxyType({})


class TopicEntry(Protocol):
    """How messages and records name the partitions of one topic."""

    topic_id: uuid.UUID
    partitions: list[int]


def from_entries(entries: Iterable[TopicEntry]) -> Assignment:
    """An assignment as a message tells it; a topic may be named more than once."""
    collected: dict[uuid.UUID, frozenset[int]] = {}
    for entry in entries:
        if entry.partitions:
            known = collected.get(entry.topic_id, frozenset())
            collected[entry.topic_id] = known.union(entry.partitions)
    return collected


def sorted_entries(assignment: Assignment) -> Iterator[tuple[uuid.UUID, list[int]]]:
    """Topics and their partitions, in an order that does not depend on how they came about."""
    for topic_id in sorted(assignment):
        yield topic_id, sorted(assignment[topic_id])


def from_names(entries: Iterable[tuple[str, list[int]]], image: ClusterImage) -> Assignment:
    """An assignment that names topics; those that do not exist are left out."""
    collected: dict[uuid.UUID, frozenset[int]] = {}
    for name, partitions in entries:
        topic = image.topics.get(name)
        if topic is not None and partitions:
            known = collected.get(topic.topic_id, frozenset())
            collected[topic.topic_id] = known.union(partitions)
    return collected


def named_entries(
    assignment: Assignment, image: ClusterImage
) -> Iterator[tuple[str, uuid.UUID, list[int]]]:
    """Names, ids and partitions of the topics that still exist."""
    for topic_id, partitions in sorted_entries(assignment):
        name = image.topic_names.get(topic_id)
        if name is not None:
            yield name, topic_id, partitions


def pairs(assignment: Assignment) -> Iterator[tuple[uuid.UUID, int]]:
    """Each partition by itself."""
    for topic_id, partitions in assignment.items():
        for partition in partitions:
            yield topic_id, partition


def common(left: Assignment, right: Assignment) -> Assignment:
    """What is in both."""
    shared = {topic_id: left[topic_id] & right[topic_id] for topic_id in left if topic_id in right}
    return {topic_id: partitions for topic_id, partitions in shared.items() if partitions}


def without(left: Assignment, right: Assignment) -> Assignment:
    """What is in the first only."""
    rest = {topic_id: left[topic_id] - right.get(topic_id, frozenset()) for topic_id in left}
    return {topic_id: partitions for topic_id, partitions in rest.items() if partitions}


def together(left: Assignment, right: Assignment) -> Assignment:
    """What is in one of them."""
    joined = dict(left)
    for topic_id, partitions in right.items():
        joined[topic_id] = joined.get(topic_id, frozenset()) | partitions
    return joined


def is_part_of(part: Assignment, whole: Assignment) -> bool:
    return all(part[topic_id] <= whole.get(topic_id, frozenset()) for topic_id in part)


def overlap(left: Assignment, right: Assignment) -> bool:
    return any(not left[topic_id].isdisjoint(right.get(topic_id, ())) for topic_id in left)
