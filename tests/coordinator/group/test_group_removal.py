"""Deleting groups, and what time does to offsets and groups that nobody uses."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from tests.support.worlds.offset_world import ORDERS, OffsetWorld

PRODUCER = ProducerIdentity(7, 0)
MINUTE_MS = 60_000
SETTINGS = {
    "offsets.retention.minutes": "10",
    "offsets.retention.check.interval.ms": str(MINUTE_MS),
}


def test_a_group_is_deleted_with_its_offsets() -> None:
    world = OffsetWorld()
    world.commit("g", 5)
    world.commit_in_transaction(PRODUCER, "g", 6, TopicPartition("orders", 1))
    world.commit("other", 7)
    world.delete_group("g")
    assert world.shard.groups.find("g") is None
    assert world.offsets("g") == {}
    world.end_transaction(PRODUCER, is_committed=True)
    assert world.offsets("g") == {}
    assert world.offsets("other") == {ORDERS: 7}
    world.check_replay()


def test_a_group_that_is_not_there_cannot_be_deleted() -> None:
    world = OffsetWorld()
    with pytest.raises(KafkaError) as caught:
        world.delete_group("g")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_large_group_is_deleted_piece_by_piece() -> None:
    world = OffsetWorld()
    group_id = "x" * 1_000
    for number in range(400):
        world.commit(group_id, number, TopicPartition("orders", number))
    first = world.write(lambda shard, now_ms: shard.removal.delete(group_id))
    assert first.get() is False
    assert 0 < len(world.offsets(group_id)) < 400
    world.check_replay()
    world.delete_group(group_id)
    assert world.shard.groups.find(group_id) is None
    world.check_replay()


def test_offsets_expire_when_nobody_uses_them() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("g", 5)
    world.advance(5 * MINUTE_MS)
    world.commit("g", 6, TopicPartition("orders", 1))
    world.advance(5 * MINUTE_MS)
    assert world.offsets("g") == {TopicPartition("orders", 1): 6}
    world.advance(4 * MINUTE_MS)
    assert world.shard.groups.find("g") is not None
    world.advance(MINUTE_MS)
    assert world.offsets("g") == {}
    assert world.shard.groups.find("g") is None
    world.check_replay()


def test_a_commit_renews_an_offset() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("g", 5)
    world.advance(9 * MINUTE_MS)
    world.commit("g", 5)
    world.advance(9 * MINUTE_MS)
    assert world.offsets("g") == {ORDERS: 5}


def test_a_client_may_set_the_retention_itself() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("short", 5, retention_ms=90_000, api_version=4)
    world.commit("long", 5, retention_ms=20 * MINUTE_MS, api_version=4)
    world.advance(MINUTE_MS)
    assert world.offsets("short") == {ORDERS: 5}
    world.advance(MINUTE_MS)
    assert world.offsets("short") == {}
    world.advance(17 * MINUTE_MS)
    assert world.offsets("long") == {ORDERS: 5}
    world.advance(MINUTE_MS)
    assert world.offsets("long") == {}
    world.check_replay()


def test_a_retention_beyond_the_end_of_time_keeps_an_offset_for_good() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("g", 5, retention_ms=2**63 - 1, api_version=4)
    world.advance(1_000 * MINUTE_MS)
    assert world.offsets("g") == {ORDERS: 5}
    world.check_replay()


def test_an_open_transaction_keeps_an_offset_and_its_group() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("g", 5)
    world.commit_in_transaction(PRODUCER, "h", 6)
    world.commit_in_transaction(PRODUCER, "g", 6)
    world.advance(30 * MINUTE_MS)
    assert world.offsets("g") == {ORDERS: 5}
    assert world.shard.groups.find("h") is not None
    world.end_transaction(PRODUCER, is_committed=False)
    world.advance(MINUTE_MS)
    assert world.offsets("g") == {}
    assert world.shard.groups.find("h") is None
    world.check_replay()


def test_a_group_goes_after_its_last_offset_was_deleted() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("g", 5)
    world.delete("g")
    assert world.shard.groups.find("g") is not None
    world.advance(MINUTE_MS)
    assert world.shard.groups.find("g") is None
    world.check_replay()


def test_the_search_goes_on_after_a_restart_and_after_a_failure() -> None:
    world = OffsetWorld(SETTINGS)
    world.commit("g", 5)
    world.restart()
    world.advance(9 * MINUTE_MS)
    world.fail_next = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.advance(MINUTE_MS)
    assert world.offsets("g") == {ORDERS: 5}
    world.advance(MINUTE_MS)
    assert world.offsets("g") == {}


def test_much_that_expires_at_once_goes_in_parts() -> None:
    world = OffsetWorld(SETTINGS)
    group_ids = [f"{'x' * 1_000}{number}" for number in range(600)]
    for group_id in group_ids:
        world.commit(group_id, 5)
    world.advance(10 * MINUTE_MS)
    left = sum(bool(world.offsets(group_id)) for group_id in group_ids)
    assert 0 < left < len(group_ids)
    world.advance(MINUTE_MS // 2)
    assert len(world.shard.groups) == 0
    world.check_replay()
