"""The states of a producer's transactions, as a table.

A plain idempotent producer knows four of them: it is not initialized, being initialized, ready, or
has failed for good. A transactional one begins and ends transactions in between.

| State | What the user may do |
| --- | --- |
| UNINITIALIZED | init_transactions |
| INITIALIZING | wait |
| READY | begin_transaction |
| IN_TRANSACTION | send, send_offsets_to_transaction, prepare, commit, abort |
| PREPARING | wait: what was sent is being written |
| PREPARED | complete, commit, abort: nothing can be added any more |
| COMMITTING, ABORTING | wait |
| ABORTABLE_ERROR | abort: something of the transaction is lost, the producer is not |
| FATAL_ERROR | close: a new producer is needed |
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(Enum):
    UNINITIALIZED = "not initialized"
    INITIALIZING = "being initialized"
    READY = "outside of a transaction"
    IN_TRANSACTION = "in a transaction"
    PREPARING = "preparing a transaction"
    PREPARED = "in a prepared transaction"
    COMMITTING = "committing a transaction"
    ABORTING = "aborting a transaction"
    ABORTABLE_ERROR = "in a transaction that has to be aborted"
    FATAL_ERROR = "not usable any more"


#: Where each state may lead; besides, every one may lead to FATAL_ERROR, which leads nowhere.
NEXT: Final[dict[State, frozenset[State]]] = {
    State.UNINITIALIZED: frozenset({State.INITIALIZING}),
    # Back where the cluster refused it, for a reason that may pass; on to PREPARED where a prepared
    # transaction of an earlier instance was found.
    State.INITIALIZING: frozenset({State.READY, State.PREPARED, State.UNINITIALIZED}),
    # Back where an idempotent producer has used up the epochs of its id.
    State.READY: frozenset({State.IN_TRANSACTION, State.UNINITIALIZED}),
    State.IN_TRANSACTION: frozenset(
        {State.PREPARING, State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR}
    ),
    State.PREPARING: frozenset({State.PREPARED, State.ABORTABLE_ERROR}),
    State.PREPARED: frozenset({State.COMMITTING, State.ABORTING}),
    # To INITIALIZING where the producer itself has to ask for a new epoch.
    State.COMMITTING: frozenset({State.READY, State.INITIALIZING, State.ABORTABLE_ERROR}),
    State.ABORTING: frozenset({State.READY, State.INITIALIZING}),
    State.ABORTABLE_ERROR: frozenset({State.ABORTING}),
    State.FATAL_ERROR: frozenset(),
}


def may_follow(before: State, after: State) -> bool:
    if after is State.FATAL_ERROR:
        return before is not State.FATAL_ERROR
    return after in NEXT[before]


#: Where records and offsets are on their way that belong to a transaction.
OPEN: Final = frozenset(
    {
        State.IN_TRANSACTION,
        State.PREPARING,
        State.PREPARED,
        State.COMMITTING,
        State.ABORTING,
        State.ABORTABLE_ERROR,
    }
)
#: Where the end of the transaction waits for all records to be written.
COMPLETING: Final = frozenset({State.PREPARING, State.COMMITTING, State.ABORTING})
#: Where new batches may go out.
WRITING: Final = frozenset({State.IN_TRANSACTION, State.PREPARING, State.COMMITTING})
#: Where a transaction can only be aborted.
DOOMED: Final = frozenset({State.ABORTABLE_ERROR, State.ABORTING})
