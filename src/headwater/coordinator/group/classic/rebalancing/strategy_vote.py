"""How the members of a group choose the strategy by which partitions are assigned.

Candidates are the strategies that every member supports. Each member votes for the first candidate
in its own list, and the one with the most votes is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from headwater.base.checks import check


def candidates(supported: Sequence[Collection[str]]) -> frozenset[str]:
    """The names that are in each member's list."""
    if not supported:
        return frozenset()
    return frozenset(supported[0]).intersection(*supported[1:])


def elect_strategy(supported: Sequence[Collection[str]]) -> str:
    """The name that wins; among equals, the one that was voted for first.

    There must be a candidate: nobody is let into a group that would be left without one.
    """
    standing = candidates(supported)
    check(standing, "no strategy is supported by all members")
    votes = Counter(next(name for name in names if name in standing) for names in supported)
    # `most_common` keeps the order in which names were first counted.
    return votes.most_common(1)[0][0]
