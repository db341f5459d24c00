"""ConsumerGroupHeartbeat: joining, leaving, epochs, and what is refused."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import MemberState
from headwater.wire.messages.consumer_group_heartbeat import TopicPartitions
from tests.support.fakes.peers.config_image import FakeConfigImage
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld, settle_group

VERSION_0 = JoiningClient("client", "/10.0.0.1", 0)


def test_the_first_member_gets_everything_at_once() -> None:
    world = ConsumerWorld({"orders": 3})
    client = Client(world, "a", ["orders"])
    response = client.join()
    assert (response.member_id, response.member_epoch) == ("a", 1)
    assert response.heartbeat_interval_ms == 5_000
    assert client.partitions == {("orders", 0), ("orders", 1), ("orders", 2)}
    group = world.group()
    assert (group.state_name, group.epoch, group.target_epoch) == ("Stable", 1, 1)


def test_in_version_0_the_coordinator_chooses_the_member_id() -> None:
    world = ConsumerWorld({"orders": 1})
    request = Client(world, "", ["orders"]).complete_request(topic_partitions=[])
    first = world.heartbeat(request, VERSION_0)
    second = world.heartbeat(request, VERSION_0)
    assert first.member_id and second.member_id
    assert set(world.group().members) == {first.member_id, second.member_id}


@pytest.mark.parametrize(
    "changes",
    [
        {"group_id": ""},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [TopicPartitions(partitions=[0])]},
        {"subscribed_topic_names": None},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"member_epoch": 5, "member_id": ""},
    ],
)
def test_a_request_that_cannot_be_right_is_invalid(changes: dict[str, object]) -> None:
    world = ConsumerWorld({"orders": 1})
    request = Client(world, "a", ["orders"]).complete_request(**changes)
    assert world.refusal(request) is ErrorCode.INVALID_REQUEST
    assert len(world.topic) == 0


def test_a_member_may_join_without_wanting_anything() -> None:
    world = ConsumerWorld({"orders": 1})
    client = Client(world, "a", [])
    assert client.join().member_epoch == 1
    assert client.partitions == frozenset()
    assert world.group().state_name == "Stable"


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    written = len(world.topic)
    response = client.beat()
    assert response.assignment is None
    assert (len(world.topic), response.member_epoch) == (written, 1)


def test_a_complete_request_is_told_the_assignment_again() -> None:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    written = len(world.topic)
    response = world.heartbeat(client.complete_request())
    assert response.assignment is not None
    assert world.named(response.assignment.topic_partitions) == client.partitions
    assert len(world.topic) == written


def test_a_groups_own_settings_hold_from_the_next_heartbeat_on() -> None:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    assert client.beat().heartbeat_interval_ms == 5_000
    own = {"consumer.heartbeat.interval.ms": "9000", "consumer.session.timeout.ms": "60000"}
    world.settings.take_image(FakeConfigImage(groups={GROUP: own}))
    assert client.beat().heartbeat_interval_ms == 9_000
    world.advance(59_999)
    assert "a" in world.group().members
    client.beat()
    # A coordinator that takes over goes by them as well.
    world.take_over()
    world.advance(59_999)
    assert "a" in world.group().members
    world.settings.take_image(FakeConfigImage())
    assert client.beat().heartbeat_interval_ms == 5_000
    world.advance(45_000)
    assert world.refusal(client.request()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_and_members_that_are_not_there() -> None:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.epoch = 1
    assert world.refusal(client.request()) is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.refusal(client.request(member_epoch=-1)) is ErrorCode.GROUP_ID_NOT_FOUND
    client.join()
    assert world.refusal(client.request(member_id="b")) is ErrorCode.UNKNOWN_MEMBER_ID
    leave = client.request(member_id="b", member_epoch=-1)
    assert world.refusal(leave) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_gets_its_part_when_the_first_has_given_it_up() -> None:
    world = ConsumerWorld({"orders": 4})
    first, second = Client(world, "a", ["orders"]), Client(world, "b", ["orders"])
    first.join()
    first.clings = True
    response = second.join()
    assert (response.member_epoch, second.partitions) == (2, frozenset())
    assert world.group().state_name == "Reconciling"
    assert world.group().members["b"].state is MemberState.UNRELEASED_PARTITIONS
    first.beat()
    assert (first.epoch, len(first.told), len(first.owned)) == (1, 2, 4)
    assert world.group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    second.beat()
    assert second.partitions == frozenset()
    first.revoke()
    first.beat()
    assert first.epoch == 2
    second.beat()
    assert len(second.partitions) == 2
    assert not first.owned & second.owned
    assert world.group().state_name == "Stable"


def test_a_heartbeat_that_does_not_tell_what_the_member_has_is_no_acknowledgement() -> None:
    world = ConsumerWorld({"orders": 2})
    first, second = Client(world, "a", ["orders"]), Client(world, "b", ["orders"])
    first.join()
    second.join()
    for _ in range(2):
        first.beat(tells_owned=False)
    second.beat()
    assert (first.epoch, second.partitions) == (1, frozenset())
    first.beat()
    second.beat()
    assert (first.epoch, len(second.partitions)) == (2, 1)


def test_who_does_not_give_partitions_up_in_time_is_fenced() -> None:
    world = ConsumerWorld({"orders": 2})
    first = Client(world, "a", ["orders"], rebalance_timeout_ms=10_000)
    second = Client(world, "b", ["orders"])
    first.join()
    first.clings = True
    second.join()
    first.beat()
    world.advance(9_000)
    first.beat()
    assert "a" in world.group().members
    world.advance(1_000)
    world.check_replay()
    assert set(world.group().members) == {"b"}
    assert world.refusal(first.request()) is ErrorCode.UNKNOWN_MEMBER_ID
    second.beat()
    assert second.partitions == {("orders", 0), ("orders", 1)}


def test_who_has_given_partitions_up_is_not_fenced_later() -> None:
    world = ConsumerWorld({"orders": 2})
    first = Client(world, "a", ["orders"], rebalance_timeout_ms=10_000)
    second = Client(world, "b", ["orders"])
    first.join()
    second.join()
    settle_group(world, [first, second])
    world.advance(11_000)
    assert set(world.group().members) == {"a", "b"}


def test_who_is_silent_for_a_session_is_fenced() -> None:
    world = ConsumerWorld({"orders": 2})
    first, second = Client(world, "a", ["orders"]), Client(world, "b", ["orders"])
    first.join()
    second.join()
    settle_group(world, [first, second])
    epoch = world.group().epoch
    world.advance(44_000)
    second.beat()
    world.advance(1_000)
    assert set(world.group().members) == {"b"}
    assert world.group().epoch == epoch + 1
    second.beat()
    assert len(second.partitions) == 2


def test_sessions_follow_the_setting() -> None:
    world = ConsumerWorld(
        {"orders": 1},
        {
            "group.consumer.session.timeout.ms": "60000",
            "group.consumer.heartbeat.interval.ms": "7000",
        },
    )
    assert Client(world, "a", ["orders"]).join().heartbeat_interval_ms == 7_000
    world.advance(59_999)
    assert world.group().state_name == "Stable"
    world.advance(1)
    assert world.group().state_name == "Empty"


def test_a_member_that_could_not_be_fenced_is_fenced_later() -> None:
    world = ConsumerWorld({"orders": 1})
    Client(world, "a", ["orders"]).join()
    world.fail_next = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.advance(45_000)
    assert "a" in world.group().members
    world.advance(1_000)
    assert world.group().is_empty


def test_leaving_hands_the_partitions_on() -> None:
    world = ConsumerWorld({"orders": 2})
    first, second = Client(world, "a", ["orders"]), Client(world, "b", ["orders"])
    first.join()
    second.join()
    settle_group(world, [first, second])
    response = first.leave()
    assert (response.member_id, response.member_epoch) == ("a", -1)
    second.beat()
    assert len(second.partitions) == 2
    second.leave()
    assert (world.group().state_name, world.group().members) == ("Empty", {})


def test_a_newer_epoch_than_the_coordinators_is_fenced() -> None:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    assert world.refusal(client.request(member_epoch=2)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_epoch_before_is_accepted_from_who_has_nothing_else() -> None:
    """The answer that told of the new epoch was lost."""
    world = ConsumerWorld({"orders": 2, "more": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    lost = client.request(
        subscribed_topic_names=["orders", "more"], topic_partitions=client.owned_entries()
    )
    assert world.heartbeat(lost).member_epoch == 2
    silent = client.request(topic_partitions=None)
    assert world.refusal(silent) is ErrorCode.FENCED_MEMBER_EPOCH
    foreign = [TopicPartitions(topic_id=world.topic_id("orders"), partitions=[0, 7])]
    odd = client.request(topic_partitions=foreign)
    assert world.refusal(odd) is ErrorCode.FENCED_MEMBER_EPOCH
    assert client.beat().member_epoch == 2
    far_behind = client.request(member_epoch=1, topic_partitions=[])
    client.subscribe(["orders"])
    client.beat()
    assert client.epoch == 3
    assert world.refusal(far_behind) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_joins_again_is_told_everything() -> None:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    epoch = world.group().epoch
    client.join()
    assert len(client.partitions) == 2
    assert world.group().epoch == epoch


def test_a_group_has_no_more_members_than_it_may() -> None:
    world = ConsumerWorld({"orders": 1}, {"group.consumer.max.size": "1"})
    first, second = Client(world, "a", ["orders"]), Client(world, "b", ["orders"])
    first.join()
    assert world.refusal(second.complete_request()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.join()
    first.leave()
    assert second.join().member_epoch == 3


def test_the_assignor_that_most_members_prefer_is_taken() -> None:
    world = ConsumerWorld({"a": 1, "b": 1})
    clients = [Client(world, name, ["a", "b"], assignor="range") for name in ("x", "y")]
    clients.append(Client(world, "z", ["a", "b"], assignor="uniform"))
    for client in clients:
        client.join()
    settle_group(world, clients)
    # Range gives one member all the first partitions.
    assert sorted(len(client.partitions) for client in clients) == [0, 0, 2]
    assert world.shard.consumer.describe(GROUP).assignor_name == "range"


def test_an_assignor_that_is_not_there_is_refused() -> None:
    world = ConsumerWorld({"a": 1}, {"group.consumer.assignors": "uniform"})
    request = Client(world, "x", ["a"], assignor="range").complete_request()
    assert world.refusal(request) is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_nothing_has_happened_if_a_join_cannot_be_written() -> None:
    world = ConsumerWorld({"orders": 1})
    world.fail_next = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    client = Client(world, "a", ["orders"])
    assert world.refusal(client.complete_request()) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.shard.groups.find_of(ConsumerGroup, GROUP) is None
    world.advance(45_000)
    assert client.join().member_epoch == 1


def test_an_answer_waits_until_its_records_are_safe() -> None:
    world = ConsumerWorld({"orders": 1})
    world.hold = True
    request = Client(world, "a", ["orders"]).complete_request()
    answer = world.write(lambda shard, now_ms: shard.consumer.heartbeat(request, VERSION_0, now_ms))
    assert not answer.is_given
    world.release()
    assert answer.get().member_epoch == 1
