"""What offsets, deletion and tools ask a consumer group."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.group import ConsumerGroup
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld, settle_group


def commit_error(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    *,
    version: int = 9,
    is_transactional: bool = False,
) -> ErrorCode:
    try:
        group.check_offset_commit(
            member_id, None, epoch, is_transactional=is_transactional, api_version=version
        )
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def fetch_error(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        group.check_offset_fetch(member_id, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def joined() -> tuple[ConsumerWorld, Client]:
    world = ConsumerWorld({"orders": 2})
    client = Client(world, "a", ["orders"])
    client.join()
    return world, client


def test_members_commit_in_their_epoch() -> None:
    world, _ = joined()
    group = world.group()
    assert commit_error(group, "a", 1) is ErrorCode.NONE
    assert commit_error(group, "a", 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit_error(group, "a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit_error(group, "b", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(group, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_of_this_protocol_need_a_version_that_knows_epochs() -> None:
    world, _ = joined()
    group = world.group()
    assert commit_error(group, "a", 1, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit_error(group, "a", 1, version=3, is_transactional=True) is ErrorCode.NONE


def test_producers_may_commit_without_a_name() -> None:
    world, _ = joined()
    group = world.group()
    assert commit_error(group, "", -1, is_transactional=True) is ErrorCode.NONE
    assert commit_error(group, "b", 1, is_transactional=True) is ErrorCode.UNKNOWN_MEMBER_ID


def test_anybody_may_commit_for_a_group_without_members() -> None:
    world, client = joined()
    client.leave()
    assert commit_error(world.group(), "", -1) is ErrorCode.NONE
    assert commit_error(world.group(), "a", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_fetch_offsets_in_their_epoch_and_others_without_one() -> None:
    world, _ = joined()
    group = world.group()
    assert fetch_error(group, None, -1) is ErrorCode.NONE
    assert fetch_error(group, "a", 1) is ErrorCode.NONE
    assert fetch_error(group, "a", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch_error(group, "b", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_only_an_empty_group_can_be_deleted_and_then_nothing_is_left() -> None:
    world = ConsumerWorld({"orders": 1})
    clients = [Client(world, "a", ["orders"]), Client(world, "b", regex="o.*")]
    for client in clients:
        client.join()
    with pytest.raises(KafkaError) as caught:
        world.group().check_deletion()
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    for client in clients:
        client.leave()
    world.write(lambda shard, _: shard.removal.delete(GROUP))
    assert world.shard.groups.find(GROUP) is None
    world.check_replay()
    keys = {written.record.key for written in world.topic if written.record is not None}
    living = {
        key
        for key in keys
        if [w.record for w in world.topic if w.record and w.record.key == key][-1].value is not None
    }
    assert living == set()


def test_a_description_shows_epochs_members_and_assignments() -> None:
    world = ConsumerWorld({"orders": 2})
    first = Client(world, "a", ["orders"], instance_id="i")
    second = Client(world, "b", regex="orders")
    first.join()
    first.clings = True
    second.join()
    described = world.shard.consumer.describe(GROUP)
    assert (described.group_state, described.group_epoch) == ("Reconciling", 2)
    assert (described.assignment_epoch, described.assignor_name) == (2, "uniform")
    member = described.members[0]
    assert (member.member_id, member.instance_id, member.member_epoch) == ("a", "i", 1)
    assert (member.client_id, member.client_host) == ("client", "/10.0.0.1")
    assert (member.subscribed_topic_names, member.member_type) == (["orders"], 1)
    assert [
        (entry.topic_name, entry.topic_id, entry.partitions)
        for entry in member.assignment.topic_partitions
    ] == [("orders", world.topic_id("orders"), [0, 1])]
    assert [entry.partitions for entry in member.target_assignment.topic_partitions] == [[0]]
    other = described.members[1]
    assert (other.subscribed_topic_regex, other.assignment.topic_partitions) == ("orders", [])
    world.set_topics({"orders": None})
    described = world.shard.consumer.describe(GROUP)
    assert described.group_state == "Assigning"
    assert described.members[0].assignment.topic_partitions == []


def test_a_group_that_is_not_there_or_not_of_this_kind_cannot_be_described() -> None:
    world = ConsumerWorld({"orders": 2})
    with pytest.raises(KafkaError) as caught:
        world.shard.consumer.describe("nobody")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_known_by_its_kind_and_protocol() -> None:
    world, client = joined()
    group = world.group()
    assert (group.kind, group.protocol_type, group.is_empty) == ("consumer", "consumer", False)
    settle_group(world, [client])
    assert group.state_name == "Stable"
