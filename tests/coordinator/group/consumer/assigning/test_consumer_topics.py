"""Consumer groups when subscriptions change, topics come and go, and coordinators are replaced."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld


def test_another_subscription_raises_the_epoch() -> None:
    world = ConsumerWorld({"orders": 1, "more": 1})
    client = Client(world, "a", ["orders"])
    client.join()
    client.subscribe(["more"])
    assert world.group().epoch == 2
    client.beat()
    assert client.partitions == {("more", 0)}
    client.subscribe(["more"])
    assert world.group().epoch == 2


def test_a_subscription_to_a_topic_that_comes_later() -> None:
    world = ConsumerWorld({})
    client = Client(world, "a", ["orders"])
    client.join()
    assert client.partitions == frozenset()
    world.set_topics({"orders": 2})
    assert (world.group().epoch, world.group().state_name) == (2, "Assigning")
    client.beat()
    assert len(client.partitions) == 2


def test_a_topic_that_grows_and_one_that_goes() -> None:
    world = ConsumerWorld({"orders": 1, "more": 1})
    client = Client(world, "a", ["orders", "more"])
    client.join()
    world.set_topics({"orders": 3})
    client.beat()
    assert len(client.partitions) == 4
    world.set_topics({"more": None})
    client.beat()
    client.beat()
    assert client.partitions == {("orders", 0), ("orders", 1), ("orders", 2)}
    assert world.group().state_name == "Stable"


def test_a_topic_that_is_made_anew_is_another_one() -> None:
    world = ConsumerWorld({"orders": 1})
    client = Client(world, "a", ["orders"])
    client.join()
    old_id = world.topic_id("orders")
    world.set_topics({"orders": None})
    world.set_topics({"orders": 1})
    client.beat()
    client.beat()
    assert client.owned == {(world.topic_id("orders"), 0)}
    assert world.topic_id("orders") != old_id


def test_changes_of_topics_that_nobody_reads_do_not_matter() -> None:
    world = ConsumerWorld({"orders": 1, "other": 1})
    Client(world, "a", ["orders"]).join()
    world.set_topics({"other": 5, "new": 1, "orders": 1})
    assert world.group().epoch == 1


def test_a_heartbeat_while_a_change_is_being_made_known() -> None:
    world = ConsumerWorld({"orders": 1})
    client = Client(world, "a", ["orders"])
    client.join()
    client.beat()
    world.set_topics({"orders": 3}, between=client.beat)
    client.beat()
    assert len(client.partitions) == 3


def test_a_change_that_no_one_told_the_coordinator_is_found_some_time_after_loading() -> None:
    world = ConsumerWorld({"orders": 1})
    client = Client(world, "a", ["orders"])
    client.join()
    world.take_over()
    client.beat()
    world.image = ConsumerWorld({"orders": 3}).image  # The ids are the same.
    client.beat()
    assert len(client.partitions) == 1
    world.advance(10_000)
    client.beat()
    assert len(client.partitions) == 3


def test_a_change_that_could_not_be_written_is_noticed_later() -> None:
    world = ConsumerWorld({"orders": 1})
    client = Client(world, "a", ["orders"])
    client.join()
    client.beat()
    world.fail_next = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.set_topics({"orders": 2})
    assert world.group().epoch == 1
    client.beat()
    assert len(client.partitions) == 2


def test_a_new_coordinator_notices_what_changed_in_between() -> None:
    world = ConsumerWorld({"orders": 1})
    client = Client(world, "a", ["orders"])
    client.join()
    world.shard.groups.remove(GROUP)  # The old coordinator hears of nothing any more.
    world.set_topics({"orders": 2})
    world.take_over()
    client.beat()
    assert len(client.partitions) == 2


def test_a_new_coordinator_gives_members_a_whole_session() -> None:
    world = ConsumerWorld({"orders": 2})
    first, second = Client(world, "a", ["orders"]), Client(world, "b", ["orders"])
    first.join()
    first.clings = True
    second.join()
    first.beat()
    world.advance(40_000)
    world.take_over()
    world.advance(44_000)
    assert set(world.group().members) == {"a", "b"}
    second.beat()
    first.beat()
    world.advance(16_000)  # The time to give partitions up began anew as well.
    assert set(world.group().members) == {"b"}
