"""Subscriptions by regular expressions."""

from __future__ import annotations

import time

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.assigning.regex import SubscriptionRegex
from tests.support.worlds.consumer_world import Client, ConsumerWorld, settle_group


def test_a_pattern_matches_whole_names_and_no_internal_topics() -> None:
    names = ["orders", "orders-eu", "my-orders", "__consumer_offsets", "__transaction_state"]
    assert SubscriptionRegex("orders.*").matching(names) == {"orders", "orders-eu"}
    assert SubscriptionRegex("orders").matching(names) == {"orders"}
    assert SubscriptionRegex("orders|my-orders").matching(names) == {"orders", "my-orders"}
    assert SubscriptionRegex(".*").matching(names) == set(names[:3])


@pytest.mark.parametrize("pattern", ["(", "[a", "*", r"(a)\1", "(?=a)", "a{1001}"])
def test_what_the_engine_does_not_know_is_invalid(pattern: str) -> None:
    with pytest.raises(KafkaError) as caught:
        SubscriptionRegex(pattern)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    world = ConsumerWorld({"a": 1})
    request = Client(world, "m", regex=pattern).complete_request()
    assert world.refusal(request) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(world.topic) == 0


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(.*)*(.*)*(.*)*x", "((a{0,30}){0,30})x"])
def test_no_pattern_keeps_the_coordinator_busy(pattern: str) -> None:
    """An engine that tries all ways would need longer than the universe has time."""
    began_s = time.perf_counter()
    try:
        assert SubscriptionRegex(pattern).matching(["a" * 249] * 20) == frozenset()
    except KafkaError as error:
        assert error.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert time.perf_counter() - began_s < 5


def test_topics_that_come_and_go_are_followed() -> None:
    world = ConsumerWorld({"orders-eu": 1, "other": 1})
    client = Client(world, "a", regex="orders-.*")
    client.join()
    assert client.partitions == {("orders-eu", 0)}
    world.set_topics({"orders-us": 2})
    client.beat()
    assert client.partitions == {("orders-eu", 0), ("orders-us", 0), ("orders-us", 1)}
    world.set_topics({"orders-eu": None})
    client.beat()
    client.beat()
    assert client.partitions == {("orders-us", 0), ("orders-us", 1)}
    epoch = world.group().epoch
    world.set_topics({"another": 1})
    assert world.group().epoch == epoch


def test_names_and_a_pattern_together() -> None:
    world = ConsumerWorld({"orders-eu": 1, "other": 1})
    client = Client(world, "a", ["other"], regex="orders-.*")
    client.join()
    assert client.partitions == {("orders-eu", 0), ("other", 0)}


def test_another_pattern_and_none() -> None:
    world = ConsumerWorld({"a1": 1, "b1": 1})
    first, second = Client(world, "x", regex="a.*"), Client(world, "y", regex="a.*")
    first.join()
    second.join()
    assert set(world.group().regexes) == {"a.*"}
    settle_group(world, [first, second])
    first.match("b.*")
    assert set(world.group().regexes) == {"a.*", "b.*"}
    settle_group(world, [first, second])
    assert first.partitions == {("b1", 0)}
    assert second.partitions == {("a1", 0)}
    first.match("")
    assert set(world.group().regexes) == {"a.*"}
    settle_group(world, [first, second])
    assert first.partitions == frozenset()


def test_the_last_member_with_a_pattern_takes_it_along() -> None:
    world = ConsumerWorld({"a1": 1})
    first, second = Client(world, "x", regex="a.*"), Client(world, "y", ["a1"])
    first.join()
    second.join()
    first.leave()
    assert world.group().regexes == {}
    world.check_replay()


def test_a_new_coordinator_looks_at_the_patterns_again() -> None:
    world = ConsumerWorld({"a1": 1})
    client = Client(world, "x", regex="a.*")
    client.join()
    world.shard.groups.remove(client.group_id)  # The old one hears of nothing any more.
    world.set_topics({"a2": 1, "a1": None})
    world.take_over()
    client.beat()
    client.beat()
    assert client.partitions == {("a2", 0)}


def test_a_subscription_by_pattern_counts_for_offsets() -> None:
    world = ConsumerWorld({"a1": 1, "b": 1})
    Client(world, "x", regex="a.*").join()
    assert world.group().is_subscribed_to("a1")
    assert not world.group().is_subscribed_to("b")
    assert world.group().offsets_unused_since_ms("a1", 5) is None
    assert world.group().offsets_unused_since_ms("b", 5) == 5
