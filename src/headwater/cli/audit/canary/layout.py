"""Where a canary's partitions are: one that each broker prefers to lead, with two others behind it.

Sans-io. A topic is made with a partition for each broker that is there; for brokers that come later
it grows. Partitions of brokers that have gone stay, led by whoever has another replica.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

REPLICAS_MAX: Final = 3


class Place(NamedTuple):
    """A partition as metadata show it."""

    partition: int
    leader_id: int
    replicas: Sequence[int]
    in_sync: Collection[int]


def assignments_for(brokers: Collection[int], known: Sequence[Place]) -> list[list[int]]:
    """The replicas of the partitions that are missing, each led by a broker that prefers none.

    All partitions of a topic have as many replicas; where there are too few brokers for that,
    those that are missing wait.
    """
    ordered = sorted(brokers)
    counts = [len(place.replicas) for place in known]
    preferred = {place.replicas[0] for place in known if place.replicas}
    count = counts[0] if counts else min(REPLICAS_MAX, len(ordered))
    if count > len(ordered):
        return []
    return [
        [ordered[(number + step) % len(ordered)] for step in range(count)]
        for number, broker_id in enumerate(ordered)
        if broker_id not in preferred
    ]


def to_elect(brokers: Collection[int], known: Iterable[Place]) -> list[int]:
    """Partitions that another broker leads than the one that they were made for, which could."""
    return [
        place.partition
        for place in known
        if place.replicas
        and place.leader_id != place.replicas[0]
        and place.replicas[0] in brokers
        and place.replicas[0] in place.in_sync
    ]


def min_in_sync(brokers: Collection[int]) -> int:
    """One replica may be away, and no record that was acknowledged is on a single broker."""
    return max(1, min(REPLICAS_MAX, len(brokers)) - 1)
