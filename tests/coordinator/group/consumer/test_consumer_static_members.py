"""Static members of consumer groups: they leave for a while, come back, and are fenced."""

from __future__ import annotations

from headwater.base.errors import ErrorCode
from tests.support.worlds.consumer_world import Client, ConsumerWorld, settle_group


def static(world: ConsumerWorld, member_id: str, instance_id: str, *topics: str) -> Client:
    return Client(world, member_id, list(topics) or ["orders"], instance_id=instance_id)


def test_a_static_member_that_comes_back_has_what_it_had() -> None:
    world = ConsumerWorld({"orders": 4})
    first, other = static(world, "a", "i"), Client(world, "b", ["orders"])
    first.join()
    other.join()
    settle_group(world, [first, other])
    had, epoch = first.partitions, world.group().epoch
    assert first.leave(-2).member_epoch == -2
    other.beat()
    assert other.partitions.isdisjoint(had)
    successor = static(world, "c", "i")
    response = successor.join()
    assert response.member_epoch == epoch
    assert successor.partitions == had
    assert (world.group().epoch, set(world.group().members)) == (epoch, {"b", "c"})
    settle_group(world, [successor, other])
    assert world.group().state_name == "Stable"


def test_who_has_not_left_is_not_replaced() -> None:
    world = ConsumerWorld({"orders": 1})
    static(world, "a", "i").join()
    request = static(world, "b", "i").complete_request()
    assert world.refusal(request) is ErrorCode.UNRELEASED_INSTANCE_ID


def test_who_was_replaced_is_fenced() -> None:
    world = ConsumerWorld({"orders": 1})
    first, second = static(world, "a", "i"), static(world, "b", "i")
    first.join()
    epoch = first.epoch
    first.leave(-2)
    second.join()
    for member_epoch in (epoch, -1, -2):
        request = first.request(member_epoch=member_epoch)
        assert world.refusal(request) is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_that_is_not_known() -> None:
    world = ConsumerWorld({"orders": 1})
    client = static(world, "a", "i")
    client.join()
    for member_epoch in (1, -1, -2):
        request = client.request(instance_id="j", member_epoch=member_epoch)
        assert world.refusal(request) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_come_back_within_its_session_is_gone() -> None:
    world = ConsumerWorld({"orders": 2})
    first, other = static(world, "a", "i"), Client(world, "b", ["orders"])
    first.join()
    other.join()
    settle_group(world, [first, other])
    first.leave(-2)
    world.advance(40_000)
    other.beat()
    world.advance(5_000)
    assert set(world.group().members) == {"b"}
    other.beat()
    assert len(other.partitions) == 2


def test_leaving_for_good_gives_the_instance_id_free() -> None:
    world = ConsumerWorld({"orders": 2})
    first = static(world, "a", "i")
    first.join()
    first.leave()
    assert world.group().static_member("i") is None
    assert static(world, "b", "i").join().member_epoch == 3


def test_a_member_that_is_away_cannot_go_on_as_if_nothing_was() -> None:
    world = ConsumerWorld({"orders": 2})
    client = static(world, "a", "i")
    client.join()
    epoch = client.epoch
    client.leave(-2)
    request = client.request(member_epoch=epoch, topic_partitions=[])
    assert world.refusal(request) is ErrorCode.FENCED_MEMBER_EPOCH
    assert client.join().member_epoch == epoch


def test_a_successor_that_wants_something_else_makes_the_group_rebalance() -> None:
    world = ConsumerWorld({"orders": 1, "more": 1})
    first = static(world, "a", "i")
    first.join()
    first.leave(-2)
    successor = static(world, "b", "i", "more")
    successor.join()
    assert successor.partitions == {("more", 0)}
    assert world.group().epoch == 2


def test_a_member_that_leaves_for_a_while_keeps_nothing_that_it_was_to_give_up() -> None:
    world = ConsumerWorld({"orders": 2})
    first, other = static(world, "a", "i"), Client(world, "b", ["orders"])
    first.join()
    first.clings = True
    other.join()
    first.beat()
    first.leave(-2)
    other.beat()
    assert len(other.partitions) == 1
