"""OffsetCommit and OffsetFetch as clients of all versions see them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.cluster.member import ClusterMember
from headwater.coordinator.group.offsets.commit import NewOffset
from headwater.coordinator.outcome import ProducerIdentity
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from headwater.wire.records import ControlType
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.offset_requests import (
    COORDINATOR_SETTINGS,
    commit_codes,
    committed_offsets,
    fetch_groups,
)
from tests.support.worlds.offset_world import OUTSIDER

UNKNOWN_ID = uuid.UUID(int=99)
ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize("version", range(2, 11))
def test_what_is_committed_is_fetched(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        assert await commit_codes(broker, "g", {("orders", 1): 42}, version=version) == {
            ("orders", 1): 0
        }
        fetched = await committed_offsets(broker, "g", version=min(version, 9))
        assert fetched == {("orders", 1): 42}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_partitions_that_do_not_exist(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        codes = await commit_codes(
            broker, "g", {("orders", 0): 1, ("orders", 1): 2, ("nothing", 0): 3}, version=9
        )
        assert codes == {
            ("orders", 0): 0,
            ("orders", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        topic = OffsetCommitRequestTopic(
            topic_id=UNKNOWN_ID, partitions=[OffsetCommitRequestPartition(partition_index=0)]
        )
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        response = await broker.ask(request, OffsetCommitResponse, version=10)
        assert response.topics[0].topic_id == UNKNOWN_ID
        assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_a_broker_that_does_not_coordinate_says_so(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        codes = await commit_codes(broker, "g", {("orders", 0): 1}, version=9)
        assert codes == {("orders", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
        # Consumers do not expect that error here.
        [group] = (await fetch_groups(broker, {"g": [("orders", 0)]})).groups
        assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, [])
        topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
        request = OffsetFetchRequest(group_id="g", topics=[topic])
        oldest = await broker.ask(request, OffsetFetchResponse, version=1)
        assert oldest.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        older = await broker.ask(request, OffsetFetchResponse, version=2)
        assert (older.error_code, older.topics) == (ErrorCode.NOT_COORDINATOR, [])

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_a_member_of_no_group_is_refused_for_every_partition(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        for version, code in (
            (8, ErrorCode.ILLEGAL_GENERATION),
            (9, ErrorCode.GROUP_ID_NOT_FOUND),
        ):
            codes = await commit_codes(
                broker,
                "g",
                {("orders", 0): 1, ("orders", 1): 2},
                version=version,
                generation=3,
                member_id="somebody",
            )
            assert codes == {("orders", 0): code, ("orders", 1): code}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


@pytest.mark.parametrize("version", range(1, 8))
def test_one_group_in_older_versions(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await commit_codes(broker, "g", {("orders", 1): 42}, metadata="note", version=9)
        topics = [
            OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1]),
            OffsetFetchRequestTopic(name="nothing", partition_indexes=[5]),
        ]
        request = OffsetFetchRequest(group_id="g", topics=topics)
        response = await broker.ask(request, OffsetFetchResponse, version=version)
        assert response.error_code == 0
        assert [
            (topic.name, each.partition_index, each.committed_offset, each.metadata)
            for topic in response.topics
            for each in topic.partitions
        ] == [("orders", 0, -1, ""), ("orders", 1, 42, "note"), ("nothing", 5, -1, "")]
        assert not any(each.error_code for topic in response.topics for each in topic.partitions)
        if version >= 2:
            everything = OffsetFetchRequest(group_id="g", topics=None)
            response = await broker.ask(everything, OffsetFetchResponse, version=version)
            assert [
                (topic.name, [each.committed_offset for each in topic.partitions])
                for topic in response.topics
            ] == [("orders", [42])]

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_several_groups_at_once(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        for number in range(5):
            await commit_codes(broker, f"g{number}", {("orders", 0): number}, version=9)
        wanted = {f"g{number}": [("orders", 0)] for number in range(6)}
        response = await fetch_groups(broker, wanted)
        assert {
            group.group_id: group.topics[0].partitions[0].committed_offset
            for group in response.groups
        } == {"g0": 0, "g1": 1, "g2": 2, "g3": 3, "g4": 4, "g5": -1}
        assert not any(group.error_code for group in response.groups)

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_topics_by_id(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await commit_codes(broker, "g", {("orders", 0): 42}, version=10)
        topic_id = broker.context.image.topics["orders"].topic_id
        group = OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(topic_id=UNKNOWN_ID, partition_indexes=[3]),
                OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
            ],
        )
        request = OffsetFetchRequest(groups=[group])
        response = await broker.ask(request, OffsetFetchResponse, version=10)
        unknown, known = response.groups[0].topics
        assert unknown.topic_id == UNKNOWN_ID
        assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert unknown.partitions[0].committed_offset == -1
        assert (known.topic_id, known.partitions[0].committed_offset) == (topic_id, 42)
        group.topics = None
        response = await broker.ask(request, OffsetFetchResponse, version=10)
        assert [topic.topic_id for topic in response.groups[0].topics] == [topic_id]

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_a_topic_that_is_gone_takes_its_offsets_along(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.create_topic("payments")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await commit_codes(broker, "g", {("orders", 0): 1, ("payments", 0): 2}, version=9)
        await broker.context.controller.delete_topics(["orders"])
        assert await committed_offsets(broker, "g") == {("payments", 0): 2}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_offsets_under_way_in_a_transaction_are_not_stable(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        groups = broker.context.groups
        producer = ProducerIdentity(7, 0)
        await commit_codes(broker, "g", {("orders", 0): 1}, version=9)
        await groups.write(
            "g",
            lambda shard, now_ms: shard.offsets.commit_in_transaction(
                "g", OUTSIDER, producer, [NewOffset(ORDERS, 5)], now_ms, api_version=5
            ),
        )
        wanted = {"g": [("orders", 0)]}
        stable = await fetch_groups(broker, wanted, require_stable=True)
        found = stable.groups[0].topics[0].partitions[0]
        assert (found.committed_offset, found.error_code) == (
            -1,
            ErrorCode.UNSTABLE_OFFSET_COMMIT,
        )
        assert await committed_offsets(broker, "g") == {("orders", 0): 1}
        await groups.end_transaction(groups.partition_of("g"), producer, ControlType.COMMIT, 0)
        stable = await fetch_groups(broker, wanted, require_stable=True)
        assert stable.groups[0].topics[0].partitions[0].committed_offset == 5

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_who_may_have_been_replaced_tells_no_stable_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await commit_codes(broker, "g", {("orders", 0): 1}, version=9)
        monkeypatch.setattr(ClusterMember, "is_up_to_date", False)
        stable = await fetch_groups(broker, {"g": [("orders", 0)]}, require_stable=True)
        assert stable.groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await committed_offsets(broker, "g") == {("orders", 0): 1}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    async def commit(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await commit_codes(broker, "g", {("orders", 0): 1, ("orders", 1): 7}, version=9)
        await commit_codes(broker, "g", {("orders", 0): 2}, version=9)

    async def fetch(broker: HandlerBroker) -> None:
        await broker.context.groups.loaded()
        assert await committed_offsets(broker, "g") == {("orders", 0): 2, ("orders", 1): 7}

    run_with_broker(tmp_path, commit, COORDINATOR_SETTINGS)
    run_with_broker(tmp_path, fetch, COORDINATOR_SETTINGS)
