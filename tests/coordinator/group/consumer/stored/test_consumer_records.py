"""The stored form of consumer groups: Kafka's bytes, and what replay makes of odd histories."""

from __future__ import annotations

import random
import uuid

from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import (
    ClassicProtocol,
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from headwater.coordinator.group.consumer.stored.records import (
    ResolvedRegex,
    current_record,
    group_record,
    group_tombstone,
    member_record,
    member_tombstones,
    read_current,
    read_member,
    read_regex,
    read_target,
    regex_record,
    target_epoch_record,
    target_record,
)
from headwater.coordinator.group.consumer.stored.schemas import (
    PARTITION_METADATA_KEY,
    ConsumerGroupKey,
)
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import Change
from headwater.coordinator.stored_record import StoredRecord, encode_versioned
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld
from tests.support.worlds.shard_world import ManualTimers

TOPIC = uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F10)
MEMBER = ConsumerMember(
    "m",
    instance_id="i",
    client_id="c",
    client_host="/h",
    topics=frozenset({"b", "a"}),
    regex="x.*",
    rebalance_timeout_ms=7,
    assignor="range",
    classic=ClassicSide(9, (ClassicProtocol("range", b"\x01"),)),
    epoch=3,
    previous_epoch=2,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned={TOPIC: frozenset({1, 0})},
    revoking={TOPIC: frozenset({2})},
)
TOPIC_BYTES = bytes(range(1, 17))


def shard() -> GroupShard:
    values = BrokerSettings.from_texts({"broker.id": "0"})
    return GroupShard(GroupEnvironment(values, ClusterImage, ManualTimers(), random.Random(1)))


def replay(records: list[StoredRecord]) -> GroupShard:
    made = shard()
    for offset, record in enumerate(records):
        made.replay(record, offset, None, 0)
    return made


def test_the_bytes_are_kafkas() -> None:
    assert group_record("g", 5, 0) == (
        bytes.fromhex("0003 0001 67"),
        bytes.fromhex("0000 00000005 00"),
    )
    assert group_record("g", 5, -2).value == bytes.fromhex(
        "0000 00000005 01 00 08 fffffffffffffffe"
    )
    assert target_epoch_record("g", 6) == (
        bytes.fromhex("0006 0001 67"),
        bytes.fromhex("0000 00000006 00"),
    )
    assert target_record("g", "m", {TOPIC: frozenset({1, 0})}) == (
        bytes.fromhex("0007 0001 67 0001 6d"),
        bytes.fromhex("0000 02") + TOPIC_BYTES + bytes.fromhex("03 00000000 00000001 00 00"),
    )
    assert current_record("g", MEMBER) == (
        bytes.fromhex("0008 0001 67 0001 6d"),
        bytes.fromhex("0000 00000003 00000002 01 02")
        + TOPIC_BYTES
        + bytes.fromhex("03 00000000 00000001 00 02")
        + TOPIC_BYTES
        + bytes.fromhex("02 00000002 00 00"),
    )
    assert regex_record("g", "x.*", ResolvedRegex(frozenset({"b", "a"}), 258)) == (
        bytes.fromhex("0010 0001 67 0003 782e2a"),
        bytes.fromhex("0000 03 0261 0262 0000000000000000 0000000000000102 00"),
    )


def test_a_members_bytes_with_what_it_says_in_the_classic_protocol() -> None:
    key, value = member_record("g", MEMBER)
    assert key == bytes.fromhex("0005 0001 67 0001 6d")
    assert value == bytes.fromhex(
        "0000"
        "0269"  # instance id
        "00"  # no rack
        "0263 032f68"  # client id and host
        "03 0261 0262"  # topics
        "04782e2a"  # pattern
        "00000007"  # rebalance timeout
        "0672616e6765"  # assignor
        "01 00 10"  # one tagged field: number 0, 16 bytes
        "01 00000009 02 0672616e6765 0201 00 00"  # there is one; session timeout, protocols
    )


def test_what_is_written_is_read() -> None:
    value = member_record("g", MEMBER).value
    current = current_record("g", MEMBER).value
    target = target_record("g", "m", MEMBER.assigned).value
    resolved = ResolvedRegex(frozenset({"a"}), 5)
    regex = regex_record("g", "x", resolved).value
    assert value and current and target and regex
    assert read_current(current, read_member(value, ConsumerMember("m"))) == MEMBER
    assert read_target(target) == MEMBER.assigned
    assert read_regex(regex) == resolved


def test_a_state_of_a_later_release_is_unknown() -> None:
    assert MemberState.from_stored(9) is MemberState.UNKNOWN
    assert MemberState.from_stored(2) is MemberState.UNRELEASED_PARTITIONS


def test_tombstones_of_what_is_not_there_do_nothing() -> None:
    made = replay([*member_tombstones("g", "m"), group_tombstone("g")])
    assert len(made.groups) == 0


def test_compaction_may_leave_any_record_to_be_the_first() -> None:
    world = ConsumerWorld({"orders": 3})
    clients = [Client(world, "a", ["orders"]), Client(world, "b", regex="o.*")]
    for client in clients:
        client.join()
    for _ in range(3):
        for client in clients:
            client.beat()
    clients[0].leave()
    clients[1].beat()
    records = [written.record for written in world.topic if written.record is not None]
    last = {record.key: offset for offset, record in enumerate(records)}
    compacted = [record for offset, record in enumerate(records) if last[record.key] == offset]
    assert len(compacted) < len(records)
    assert replay(compacted).stored_state() == world.shard.stored_state()
    without_tombstones = [record for record in compacted if record.value is not None]
    assert replay(without_tombstones).stored_state() == world.shard.stored_state()


def test_the_topics_that_an_earlier_release_described_are_deleted_with_the_next_epoch() -> None:
    world = ConsumerWorld({"orders": 1})
    key = encode_versioned(ConsumerGroupKey(group_id=GROUP), PARTITION_METADATA_KEY)
    world.write(lambda shard, _: _write(StoredRecord(key, b"\x00\x00")))
    assert world.group().has_partition_metadata
    Client(world, "a", ["orders"]).join()
    assert not world.group().has_partition_metadata
    assert world.topic[-1].record != StoredRecord(key, None)
    assert StoredRecord(key, None) in [written.record for written in world.topic]


def test_two_members_with_one_partition_do_not_keep_a_topic_from_being_loaded() -> None:
    """An assignor of the classic protocol may have decided so."""
    records = []
    for name in ("a", "b"):
        member = ConsumerMember(name, epoch=1, assigned={TOPIC: frozenset({0})})
        records += [member_record("g", member), current_record("g", member)]
    records += member_tombstones("g", "b")
    group = replay(records).groups.find_of(ConsumerGroup, "g")
    assert group is not None
    assert set(group.members) == {"a"}


def _write(record: StoredRecord) -> Change[bool]:
    return Change(True, [record])
