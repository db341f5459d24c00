"""Groups that change their protocol with members in them, and members of both protocols."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import MemberState
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld
from tests.support.worlds.mixed_world import SESSION_MS, ClassicClient, settle_classic, settle_mixed


def classic_pair(
    settings: dict[str, str] | None = None, *, is_eager: bool = False
) -> tuple[ConsumerWorld, list[ClassicClient]]:
    """A stable classic group of two members, with two partitions each."""
    world = ConsumerWorld({"orders": 4}, settings)
    clients = [ClassicClient(world, ["orders"], is_eager=is_eager) for _ in range(2)]
    settle_classic(clients)
    assert sorted(len(client.owned) for client in clients) == [2, 2]
    return world, clients


def kind(world: ConsumerWorld) -> str:
    return world.shard.groups.get(GROUP).kind


@pytest.mark.parametrize("is_eager", [False, True])
def test_a_classic_group_becomes_a_consumer_group_while_its_members_go_on(is_eager: bool) -> None:
    world, classics = classic_pair(is_eager=is_eager)
    generation = classics[0].generation
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    assert (kind(world), consumer.partitions) == ("consumer", frozenset())
    assert world.group().epoch == generation + 1
    assert classics[0].heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    settle_mixed([consumer], classics)
    group = world.group()
    assert group.state_name == "Stable"
    assert sorted([len(consumer.owned), *(len(each.owned) for each in classics)]) == [1, 1, 2]
    owned = [*consumer.partitions, *classics[0].owned, *classics[1].owned]
    assert len(owned) == len(set(owned)) == 4
    assert {each.heartbeat() for each in classics} == {ErrorCode.NONE}
    described = world.shard.consumer.describe(GROUP)
    assert sorted(member.member_type for member in described.members) == [0, 0, 1]


def test_nobody_gets_what_a_classic_member_has_not_given_up() -> None:
    world, classics = classic_pair()
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    classics[0].go_on()  # It hears of the rebalance and joins, and still has everything.
    consumer.beat()
    assert consumer.partitions == frozenset()
    member = world.group().members[classics[0].member_id]
    assert member.state in (MemberState.UNREVOKED_PARTITIONS, MemberState.STABLE)
    settle_mixed([consumer], classics)
    assert consumer.partitions


def test_who_waits_for_a_rebalance_of_the_classic_group_is_told_to_join_again() -> None:
    world, classics = classic_pair()
    third = ClassicClient(world, ["orders"])
    third.join()
    assert third.join_answer is not None
    assert not third.join_answer.is_given
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    with pytest.raises(KafkaError) as caught:
        third.join_answer.get()
    assert caught.value.code is ErrorCode.REBALANCE_IN_PROGRESS
    settle_mixed([consumer], [*classics, third])
    assert world.group().state_name == "Stable"
    assert len(third.owned) == 1


def test_the_last_consumer_leaves_and_the_group_is_a_classic_one_again() -> None:
    world, classics = classic_pair()
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    settle_mixed([consumer], classics)
    epoch = world.group().epoch
    consumer.leave()
    group = world.shard.groups.get(GROUP)
    assert isinstance(group, ClassicGroup)
    world.advance(0)
    assert group.generation == epoch
    assert group.state_name == "PreparingRebalance"
    for each in classics:
        assert each.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        group.check_offset_commit(
            each.member_id, None, each.generation, is_transactional=False, api_version=8
        )
    settle_classic(classics)
    assert sorted(len(each.owned) for each in classics) == [2, 2]
    assert {each.heartbeat() for each in classics} == {ErrorCode.NONE}
    world.advance(SESSION_MS - 1)
    for each in classics:
        each.heartbeat()
    world.advance(SESSION_MS - 1)
    assert group.state_name == "Stable"
    world.advance(1)
    assert group.state_name == "Empty"


def test_a_consumer_that_is_fenced_makes_the_group_a_classic_one_too() -> None:
    world, classics = classic_pair()
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    for _ in range(5):
        world.advance(SESSION_MS - 1_000)
        settle_classic(classics, 3)
    world.advance(1_000)
    assert kind(world) == "classic"


def test_another_coordinator_can_take_over_at_any_time() -> None:
    world, classics = classic_pair()
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    for _ in range(10):
        world.take_over()
        consumer.beat_or_rejoin()
        for each in classics:
            each.go_on()
    assert world.group().state_name == "Stable"
    consumer.leave()
    world.take_over()
    settle_classic(classics)
    assert sorted(len(each.owned) for each in classics) == [2, 2]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_may_forbid_to_upgrade(policy: str) -> None:
    world, classics = classic_pair({"group.consumer.migration.policy": policy})
    request = Client(world, "new", ["orders"]).complete_request()
    assert world.refusal(request) is ErrorCode.GROUP_ID_NOT_FOUND
    assert classics[0].heartbeat() is ErrorCode.NONE


def test_the_policy_may_forbid_to_downgrade() -> None:
    world, classics = classic_pair({"group.consumer.migration.policy": "upgrade"})
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    settle_mixed([consumer], classics)
    consumer.leave()
    settle_mixed([], classics)
    assert kind(world) == "consumer"
    assert sorted(len(each.owned) for each in classics) == [2, 2]


def test_a_group_that_is_too_large_or_of_other_members_is_not_upgraded() -> None:
    world, _ = classic_pair({"group.consumer.max.size": "1"})
    request = Client(world, "new", ["orders"]).complete_request()
    assert world.refusal(request) is ErrorCode.GROUP_ID_NOT_FOUND
    assert kind(world) == "classic"


def test_subscriptions_that_cannot_be_read_keep_a_group_classic() -> None:
    world = ConsumerWorld({"orders": 1})
    odd = ClassicClient(world, ["orders"])
    odd.metadata = lambda: b"\x00\x01\x7f"  # type: ignore[method-assign]
    odd.join()
    request = Client(world, "new", ["orders"]).complete_request()
    assert world.refusal(request) is ErrorCode.GROUP_ID_NOT_FOUND


def test_empty_groups_change_their_protocol_in_any_case() -> None:
    world, classics = classic_pair({"group.consumer.migration.policy": "disabled"})
    for each in classics:
        each.leave()
    consumer = Client(world, "new", ["orders"])
    consumer.join()
    assert (kind(world), len(consumer.partitions)) == ("consumer", 4)
    consumer.leave()
    again = ClassicClient(world, ["orders"])
    settle_classic([again])
    assert (kind(world), len(again.owned)) == ("classic", 4)
    world.check_replay()


def test_a_group_that_has_only_offsets_becomes_a_consumer_group() -> None:
    world = ConsumerWorld({"orders": 1})
    world.shard.groups.put(ClassicGroup(GROUP))
    consumer = Client(world, "a", ["orders"])
    consumer.join()
    assert isinstance(world.shard.groups.get(GROUP), ConsumerGroup)
    assert len(consumer.partitions) == 1
