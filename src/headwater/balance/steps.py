"""A plan in steps: so many replicas at once that no broker is busy with nothing else.

A partition that changes only its order costs nothing, and all such go in the first step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from headwater.balance.plan import PlannedMove


def steps(moves: Sequence[PlannedMove], per_broker: int) -> Iterator[list[PlannedMove]]:
    """Steps in which no broker receives, or as a leader sends, more than so many replicas."""
    reordered = [move for move in moves if not move.adding]
    if reordered:
        yield reordered
    left = [move for move in moves if move.adding]
    while left:
        busy: Counter[int] = Counter()
        step: list[PlannedMove] = []
        later: list[PlannedMove] = []
        for move in left:
            involved = Counter(move.adding)
            involved[move.before[0]] += len(move.adding)
            if step and any(busy[each] + count > per_broker for each, count in involved.items()):
                later.append(move)
                continue
            busy += involved
            step.append(move)
        yield step
        left = later
