"""The vote on a group's strategy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.coordinator.group.classic.rebalancing.strategy_vote import candidates, elect_strategy

_NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")


def test_candidates_are_what_everybody_supports() -> None:
    assert candidates([["range", "sticky"], ["sticky", "roundrobin"]]) == {"sticky"}
    assert candidates([["range"], ["sticky"]]) == frozenset()
    assert candidates([]) == frozenset()


def test_each_member_votes_for_its_first_candidate() -> None:
    supported = [["a", "b"], ["b", "a"], ["x", "b", "a"]]
    assert elect_strategy(supported) == "b"


def test_what_is_not_a_candidate_gets_no_vote() -> None:
    assert elect_strategy([["a", "b"], ["a", "b"], ["b"]]) == "b"


def test_among_equals_the_first_vote_decides() -> None:
    assert elect_strategy([["b", "a"], ["a", "b"]]) == "b"


def test_there_must_be_a_candidate() -> None:
    with pytest.raises(InvariantError):
        elect_strategy([["a"], ["b"]])


@given(st.lists(st.permutations(_NAMES), min_size=1, max_size=9))
def test_nobody_has_more_votes_than_the_winner(supported: list[list[str]]) -> None:
    first_choices = [names[0] for names in supported]
    winner = elect_strategy(supported)
    assert first_choices.count(winner) == max(first_choices.count(name) for name in _NAMES)
