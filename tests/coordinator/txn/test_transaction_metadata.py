"""The states of a transaction, and every way between them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from headwater.base.checks import InvariantError
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    STATES_BY_LABEL,
    TRANSITIONS,
    ProducerIdNeededError,
    TransactionMetadata,
    TransactionState,
    next_client,
)
from tests.support.worlds.transaction_world import orders

_S = TransactionState

#: For each state those from which it can be reached, as Kafka has them.
_PREDECESSORS: dict[TransactionState, set[TransactionState]] = {
    _S.EMPTY: {_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT},
    _S.ONGOING: {_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT},
    _S.PREPARE_COMMIT: {_S.ONGOING},
    _S.PREPARE_ABORT: {
        _S.ONGOING,
        _S.PREPARE_EPOCH_FENCE,
        _S.EMPTY,
        _S.COMPLETE_COMMIT,
        _S.COMPLETE_ABORT,
    },
    _S.COMPLETE_COMMIT: {_S.PREPARE_COMMIT},
    _S.COMPLETE_ABORT: {_S.PREPARE_ABORT},
    _S.DEAD: {_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT},
    _S.PREPARE_EPOCH_FENCE: {_S.ONGOING},
}

Step = Callable[[TransactionMetadata], TransactionMetadata]

_STEPS: dict[str, tuple[Step, set[TransactionState]]] = {
    "initialised": (
        lambda old: old.initialised(old.client, previous_producer_id=-1, timeout_ms=1, now_ms=2),
        {_S.EMPTY},
    ),
    "kept": (lambda old: old.kept(old.client, timeout_ms=1, now_ms=2), {_S.ONGOING}),
    "with_partitions": (
        lambda old: old.with_partitions(orders(1), client_version=2, now_ms=2),
        {_S.ONGOING},
    ),
    "fenced": (lambda old: old.fenced(now_ms=2), {_S.PREPARE_EPOCH_FENCE}),
    "commit": (
        lambda old: old.prepared(is_commit=True, client_version=2, now_ms=2),
        {_S.PREPARE_COMMIT},
    ),
    "abort": (
        lambda old: old.prepared(is_commit=False, client_version=2, now_ms=2),
        {_S.PREPARE_ABORT},
    ),
    "completed": (lambda old: old.completed(now_ms=2), {_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
}


def in_state(state: TransactionState, epoch: int = 3) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id="payments",
        producer=ProducerIdentity(7, epoch),
        timeout_ms=1000,
        state=state,
        last_update_ms=1,
    )


@pytest.mark.parametrize(("old", "new"), list(product(_S, _S)))
def test_every_transition_is_allowed_where_kafka_allows_it(
    old: TransactionState, new: TransactionState
) -> None:
    assert (new in TRANSITIONS[old]) == (old in _PREDECESSORS[new])


@pytest.mark.parametrize(("name", "old"), list(product(_STEPS, _S)))
def test_every_step_leads_along_the_table_or_nowhere(name: str, old: TransactionState) -> None:
    step, targets = _STEPS[name]
    if targets & TRANSITIONS[old]:
        assert step(in_state(old)).state in targets & TRANSITIONS[old]
    else:
        with pytest.raises(InvariantError):
            step(in_state(old))


def test_the_names_are_those_of_kafkas_tools() -> None:
    assert list(STATES_BY_LABEL) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_the_epochs_of_a_producer_run_out_before_they_overflow() -> None:
    last = ProducerIdentity(7, CLIENT_EPOCH_MAX)
    assert next_client(ProducerIdentity(7, CLIENT_EPOCH_MAX - 1), None) == last
    with pytest.raises(ProducerIdNeededError):
        next_client(last, None)
    assert next_client(last, 8) == ProducerIdentity(8, 0)
    fenced = in_state(_S.ONGOING, CLIENT_EPOCH_MAX).fenced(now_ms=2)
    decided = fenced.prepared(is_commit=False, client_version=2, now_ms=2)
    assert decided.producer == ProducerIdentity(7, 2**15 - 1)
