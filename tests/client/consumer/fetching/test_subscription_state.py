"""What a consumer reads, and that the ways to say so are not mixed."""

from __future__ import annotations

import pytest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.errors import NotAssignedError, SubscriptionError
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.membership.membership import Subscription

FIRST, SECOND = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_new_subscription_takes_the_place_of_the_old_one() -> None:
    state = SubscriptionState()
    assert not state.is_subscribed
    state.subscribe(["a", "b"], None)
    assert state.subscribe(["c"], None) == Subscription(frozenset({"c"}))
    assert state.topics() == {"c"}


def test_assigning_keeps_the_state_of_what_stays() -> None:
    state = SubscriptionState()
    state.assign([FIRST])
    kept = state.state(FIRST)
    assert state.assign([FIRST, SECOND]) == []
    assert state.state(FIRST) is kept
    assert state.assign([SECOND]) == [FIRST]
    with pytest.raises(NotAssignedError):
        state.state(FIRST)


@pytest.mark.parametrize("first", ["topics", "pattern", "assign"])
@pytest.mark.parametrize("second", ["topics", "pattern", "assign"])
def test_the_ways_exclude_each_other(first: str, second: str) -> None:
    def choose(way: str, state: SubscriptionState) -> None:
        match way:
            case "topics":
                state.subscribe(["a"], None)
            case "pattern":
                state.subscribe(None, "a.*")
            case "assign":
                state.assign([FIRST])

    state = SubscriptionState()
    choose(first, state)
    if first == second:
        choose(second, state)
        return
    with pytest.raises(SubscriptionError, match="unsubscribe"):
        choose(second, state)
    state.unsubscribe()
    choose(second, state)


def test_nonsense_is_refused() -> None:
    state = SubscriptionState()
    with pytest.raises(SubscriptionError):
        state.subscribe([], None)
    with pytest.raises(SubscriptionError):
        state.subscribe(["a"], "b")
    with pytest.raises(SubscriptionError, match="pattern"):
        state.subscribe(None, "a(")
    with pytest.raises(KafkaError):
        state.subscribe(["a b"], None)
    with pytest.raises(SubscriptionError):
        state.assign([TopicPartition("a", -1)])
