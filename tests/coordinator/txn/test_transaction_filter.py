"""Which transactions a list shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_filter import (
    TransactionFilter,
    matcher_of,
    states_of,
)
from headwater.coordinator.txn.transaction_metadata import (
    TransactionMetadata,
    TransactionState,
)

_OPEN = TransactionMetadata(
    transactional_id="payments-1",
    producer=ProducerIdentity(7, 0),
    timeout_ms=1,
    state=TransactionState.ONGOING,
    start_ms=1000,
    last_update_ms=1000,
)


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (TransactionFilter(), True),
        (TransactionFilter(states=frozenset({TransactionState.ONGOING})), True),
        (TransactionFilter(states=frozenset({TransactionState.EMPTY})), False),
        (TransactionFilter(states=frozenset()), False),
        (TransactionFilter(producer_ids=frozenset({7, 8})), True),
        (TransactionFilter(producer_ids=frozenset({8})), False),
        (TransactionFilter(duration_ms=499), True),
        (TransactionFilter(duration_ms=500), False),
        (TransactionFilter(id_matches=matcher_of("payments-.*")), True),
        (TransactionFilter(id_matches=matcher_of("payments")), False),
    ],
)
def test_each_filter_alone(wanted: TransactionFilter, passes: bool) -> None:
    assert wanted.lets_pass(_OPEN, now_ms=1500) is passes


def test_unknown_names_of_states_are_told_apart() -> None:
    assert states_of([]) == (None, [])
    states = frozenset({TransactionState.PREPARE_COMMIT})
    assert states_of(["PrepareCommit", "Asleep"]) == (states, ["Asleep"])
    assert states_of(["Asleep"]) == (frozenset(), ["Asleep"])


def test_a_pattern_that_is_none_is_refused() -> None:
    make: Callable[[str], object] = matcher_of
    with pytest.raises(KafkaError) as caught:
        make("(")
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
