"""Offsets that members of a group use are neither deleted nor forgotten."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.group.group import Group, GroupKind
from headwater.coordinator.group.offsets.commit import Committer
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord
from tests.support.worlds.offset_world import ORDERS, OffsetWorld

PAYMENTS = TopicPartition("payments", 0)
MINUTE_MS = 60_000
SETTINGS = {
    "offsets.retention.minutes": "10",
    "offsets.retention.check.interval.ms": str(MINUTE_MS),
}


class BusyGroup(Group):
    """Its members consume orders; it takes every request, or refuses as it is told."""

    kind = GroupKind.CLASSIC

    def __init__(self, group_id: str, protocol_type: str = "consumer") -> None:
        super().__init__(group_id)
        self._protocol_type = protocol_type
        self.refusal: ErrorCode | None = None
        self.commits: list[tuple[object, ...]] = []

    @property
    def state_name(self) -> str:
        return "Stable"

    @property
    def protocol_type(self) -> str:
        return self._protocol_type

    @property
    def is_empty(self) -> bool:
        return False

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> None:
        self._refuse()
        self.commits.append(
            (member_id, group_instance_id, generation, is_transactional, api_version)
        )

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._refuse()

    def check_deletion(self) -> None:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic == ORDERS.topic

    def offsets_unused_since_ms(self, topic: str, commit_ms: int) -> int | None:
        return None if self.is_subscribed_to(topic) else commit_ms

    def tombstones(self) -> list[StoredRecord]:
        raise AssertionError("a group with members is not deleted")

    def stored_state(self) -> object:
        return None

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise KafkaError(self.refusal)


def world_with(group: BusyGroup) -> OffsetWorld:
    world = OffsetWorld(SETTINGS)
    world.shard.groups.put(group)
    world.commit(group.group_id, 5)
    world.commit(group.group_id, 6, PAYMENTS)
    return world


def test_offsets_of_a_subscribed_topic_are_not_deleted() -> None:
    world = world_with(BusyGroup("g"))
    assert world.delete("g", [ORDERS, PAYMENTS]).get() == [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.NONE,
    ]
    assert world.offsets("g") == {ORDERS: 5}


def test_members_that_are_no_consumers_may_use_any_offset() -> None:
    world = world_with(BusyGroup("g", "connect"))
    with pytest.raises(KafkaError) as caught:
        world.delete("g", [PAYMENTS])
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_a_subscribed_topic_do_not_expire() -> None:
    world = world_with(BusyGroup("g"))
    world.commit("g", 7, retention_ms=1, api_version=4)
    world.advance(30 * MINUTE_MS)
    assert world.offsets("g") == {ORDERS: 7}
    assert world.shard.groups.find("g") is not None


def test_a_group_with_members_is_not_deleted() -> None:
    world = world_with(BusyGroup("g"))
    with pytest.raises(KafkaError) as caught:
        world.delete_group("g")
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    assert world.offsets("g") == {ORDERS: 5, PAYMENTS: 6}


def test_the_group_decides_who_may_commit_and_fetch() -> None:
    group = BusyGroup("g")
    world = world_with(group)
    group.commits.clear()
    member = Committer("m", "static", 3)
    world.commit("g", 8, committer=member, api_version=9)
    world.commit_in_transaction(ProducerIdentity(1, 0), "g", 9, committer=member)
    assert group.commits == [("m", "static", 3, False, 9), ("m", "static", 3, True, 5)]
    group.refusal = ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(KafkaError) as caught:
        world.commit("g", 10, committer=member)
    assert caught.value.code is ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(KafkaError) as caught:
        world.fetch("g")
    assert caught.value.code is ErrorCode.STALE_MEMBER_EPOCH
    # A producer does not know epochs of members.
    with pytest.raises(KafkaError) as caught:
        world.commit_in_transaction(ProducerIdentity(1, 0), "g", 9, committer=member)
    assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
    group.refusal = ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(KafkaError) as caught:
        world.commit_in_transaction(ProducerIdentity(1, 0), "g", 9, committer=member)
    assert caught.value.code is ErrorCode.FENCED_INSTANCE_ID
