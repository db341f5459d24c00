"""The table of states, and what it does not allow."""

import pytest

from headwater.base.checks import InvariantError
from headwater.client.producer.transactions.producer_state import ProducerState
from headwater.client.producer.transactions.states import NEXT, OPEN, State, may_follow


def test_every_state_has_a_row_and_can_be_reached() -> None:
    assert set(NEXT) == set(State)
    reached = {State.UNINITIALIZED, State.FATAL_ERROR}.union(*NEXT.values())
    assert reached == set(State)


def test_a_fatal_error_is_the_end() -> None:
    for state in State:
        assert may_follow(state, State.FATAL_ERROR) == (state is not State.FATAL_ERROR)
        assert not may_follow(State.FATAL_ERROR, state)


def test_a_doomed_transaction_can_only_be_aborted() -> None:
    assert NEXT[State.ABORTABLE_ERROR] == {State.ABORTING}
    assert State.ABORTABLE_ERROR not in NEXT[State.ABORTING]


def test_from_every_open_state_there_is_a_way_back() -> None:
    for state in OPEN:
        ways = {state}
        while State.READY not in ways:
            further = ways.union(*(NEXT[each] for each in ways))
            assert further != ways, f"no way out of {state}"
            ways = further


def test_the_program_cannot_jump() -> None:
    producer = ProducerState()
    with pytest.raises(InvariantError):
        producer.move(State.COMMITTING)
