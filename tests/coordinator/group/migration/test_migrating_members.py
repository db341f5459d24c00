"""Members of the classic protocol inside consumer groups."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld, settle_group
from tests.support.worlds.mixed_world import (
    REBALANCE_MS,
    SESSION_MS,
    ClassicClient,
    settle_classic,
    settle_mixed,
)


def kind(world: ConsumerWorld) -> str:
    return world.shard.groups.get(GROUP).kind


def mixed(*, instance_id: str | None = None) -> tuple[ConsumerWorld, Client, ClassicClient]:
    """A stable group with a member of each protocol."""
    world = ConsumerWorld({"orders": 2})
    consumer = Client(world, "c", ["orders"])
    consumer.join()
    classic = ClassicClient(world, ["orders"], instance_id=instance_id)
    settle_mixed([consumer], [classic])
    assert (kind(world), world.group().state_name) == ("consumer", "Stable")
    assert (len(consumer.owned), len(classic.owned)) == (1, 1)
    return world, consumer, classic


def test_a_member_of_the_classic_protocol_can_join_a_consumer_group() -> None:
    world, consumer, classic = mixed()
    classic.leave()
    settle_group(world, [consumer])
    assert len(consumer.partitions) == 2
    assert kind(world) == "consumer"


def test_a_classic_member_is_fenced_when_its_session_ends() -> None:
    world, _, classic = mixed()
    world.advance(SESSION_MS - 1)
    classic.heartbeat()
    world.advance(SESSION_MS - 1)
    assert len(world.group().members) == 2
    world.advance(1)
    assert set(world.group().members) == {"c"}
    assert classic.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_join_again_is_fenced() -> None:
    world, consumer, classic = mixed()
    world.set_topics({"orders": 3})
    for _ in range(REBALANCE_MS // 5_000):
        consumer.beat()
        assert classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        world.advance(5_000)
    assert set(world.group().members) == {"c"}


def test_a_classic_member_that_does_not_ask_for_its_assignment_is_fenced() -> None:
    world, consumer, classic = mixed()
    world.set_topics({"orders": 3})
    classic.go_on()
    assert classic.join_answer is not None
    classic.generation = classic.join_answer.get().generation_id
    for _ in range(REBALANCE_MS // 5_000):
        consumer.beat()
        assert classic.heartbeat() is ErrorCode.NONE
        world.advance(5_000)
    assert set(world.group().members) == {"c"}


def test_a_classic_member_is_told_when_what_it_waits_for_is_free() -> None:
    world = ConsumerWorld({"orders": 2})
    consumer = Client(world, "c", ["orders"])
    consumer.join()
    consumer.clings = True
    classic = ClassicClient(world, ["orders"])
    for _ in range(4):
        classic.go_on()
    assert (classic.heartbeat(), classic.owned) == (ErrorCode.NONE, set())
    consumer.beat()
    assert classic.heartbeat() is ErrorCode.NONE
    consumer.revoke()
    consumer.beat()
    assert classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    settle_mixed([consumer], [classic])
    assert len(classic.owned) == 1


def test_what_a_classic_member_is_refused() -> None:
    world, consumer, classic = mixed()
    classic.generation += 1
    assert classic.heartbeat() is ErrorCode.ILLEGAL_GENERATION
    classic.sync()
    assert classic.sync_answer is not None
    with pytest.raises(KafkaError) as caught:
        classic.sync_answer.get()
    assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(KafkaError) as caught:
        world.group().check_offset_commit(
            classic.member_id, None, classic.generation, is_transactional=False, api_version=8
        )
    assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
    classic.member_id = consumer.member_id
    assert classic.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    stranger = ClassicClient(world, ["orders"], protocols=["custom"])
    stranger.join()
    assert stranger.join_answer is not None
    with pytest.raises(KafkaError) as caught:
        stranger.join_answer.get()
    assert caught.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_administrator_removes_members_of_either_protocol() -> None:
    world, _, _ = mixed(instance_id="i")
    request = LeaveGroupRequest(
        group_id=GROUP,
        members=[
            MemberIdentity(member_id="c"),
            MemberIdentity(group_instance_id="i"),
            MemberIdentity(member_id="x"),
            MemberIdentity(member_id="x", group_instance_id="i"),
            MemberIdentity(group_instance_id="j"),
        ],
    )
    answer = world.write(lambda shard, now_ms: shard.classic.leave(request, now_ms)).get()
    assert [member.error_code for member in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert world.group().is_empty
    world.check_replay()


def test_a_static_member_changes_to_the_consumer_protocol() -> None:
    world, consumer, classic = mixed(instance_id="i")
    had = set(classic.owned)
    successor = Client(world, "s", ["orders"], instance_id="i")
    successor.join()
    assert set(successor.partitions) == had
    assert classic.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    settle_group(world, [consumer, successor])
    assert world.group().state_name == "Stable"


def test_the_last_consumer_is_replaced_by_its_classic_self() -> None:
    world = ConsumerWorld({"orders": 2})
    static = Client(world, "s", ["orders"], instance_id="i")
    static.join()
    other = ClassicClient(world, ["orders"])
    settle_mixed([static], [other])
    successor = ClassicClient(world, ["orders"], instance_id="i")
    successor.join()
    world.check_replay()
    assert kind(world) == "classic"
    world.advance(0)
    settle_classic([successor, other])
    assert (len(successor.owned), len(other.owned)) == (1, 1)


def test_a_join_that_cannot_be_written_changes_nothing() -> None:
    world, _, _ = mixed()
    world.fail_next = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    newcomer = ClassicClient(world, ["orders"])
    newcomer.join()
    assert newcomer.join_answer is not None
    with pytest.raises(KafkaError):
        newcomer.join_answer.get()
    assert len(world.group().members) == 2
    world.check_replay()
