"""The states of a classic group, and which may follow which.

    Empty                no members; perhaps offsets
    PreparingRebalance   members are to join again, and wait for each other
    CompletingRebalance  all have joined; the leader works out who gets what
    Stable               everybody has an assignment
    Dead                 deleted, or another broker's by now

What requests hear in each state:

    state                JoinGroup         SyncGroup               Heartbeat
    Empty                begins            UNKNOWN_MEMBER_ID       UNKNOWN_MEMBER_ID
    PreparingRebalance   waits             REBALANCE_IN_PROGRESS   REBALANCE_IN_PROGRESS
    CompletingRebalance  begins anew (1)   waits for the leader    fine
    Stable               begins (2)        the assignment          fine
    Dead                 COORDINATOR_NOT_AVAILABLE, whatever is asked

(1) but a known member that asks again for the same gets the same answer again. (2) if a member is
new, comes with other protocols, or is the leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ClassicState(StrEnum):
    """The names are those that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


#: What may come after a state; anything else is a mistake in the program.
TRANSITIONS: Final[Mapping[ClassicState, frozenset[ClassicState]]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.DEAD: frozenset(),
}
