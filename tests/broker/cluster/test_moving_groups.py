"""Groups whose coordinator moves with the leader of their partition of `__consumer_offsets`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.producer.async_producer import AsyncProducer
from headwater.wire.messages.delete_groups import DeleteGroupsRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.list_groups import ListGroupsRequest
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.moving_coordinators import (
    coordinator_of,
    key_at,
    make_topic,
    new_coordinator,
    partition_of,
)

KIND = CoordinatorKind.GROUP
COMMIT_VERSION = FETCH_VERSION = 9


async def commit(cluster: BrokerCluster, at: int, group: str, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    response = await cluster.send(at, request, COMMIT_VERSION)
    code: int = response.topics[0].partitions[0].error_code
    return code


async def committed(cluster: BrokerCluster, at: int, group: str) -> tuple[int, int]:
    """Error code and offset."""
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])])
    response = await cluster.send(at, request, FETCH_VERSION)
    found = response.groups[0]
    if found.error_code:
        return found.error_code, -1
    partition = found.topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


async def settled(cluster: BrokerCluster, at: int, group: str) -> int:
    """The committed offset, once the coordinator has loaded."""
    async with asyncio.timeout(20):
        while True:
            code, offset = await committed(cluster, at, group)
            if code == 0:
                return offset
            assert code in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.NOT_COORDINATOR,
            ), ErrorCode.from_wire(code)
            await asyncio.sleep(0.01)


def test_all_brokers_name_the_same_coordinators(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        keys = [f"group-{number}" for number in range(20)]
        request = FindCoordinatorRequest(coordinator_keys=keys)
        # The first question has the topic made, at a broker that is not the controller.
        (other, *_) = cluster.others(cluster.controller_id)
        answers = [await cluster.send(each, request) for each in (other, *cluster.broker_ids)]
        found = [[each.node_id for each in answer.coordinators] for answer in answers]
        assert all(each == found[0] for each in found)
        assert set(found[0]) == {1, 2, 3}
        assert cluster.image.topics[KIND.topic].replication_factor == 3

    run_cluster_scenario(tmp_path, scenario)


def test_the_topic_is_made_when_there_are_brokers_for_all_replicas(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.stop(3)
        await cluster.until(lambda: len(cluster.image.brokers) == 2)
        request = FindCoordinatorRequest(coordinator_keys=["group"])
        answer = await cluster.send(1, request)
        assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert KIND.topic not in cluster.image.topics
        await cluster.start(3)
        answer = await cluster.send(1, request)
        assert answer.coordinators[0].error_code == 0

    run_cluster_scenario(tmp_path, scenario)


def test_offsets_are_there_when_the_coordinator_has_moved_and_when_it_is_back(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await make_topic(cluster, KIND)
        for first in cluster.broker_ids:
            group = key_at(cluster, KIND, first)
            assert await commit(cluster, first, group, 10) == 0
            (other, *_) = cluster.others(first)
            assert await commit(cluster, other, group, 11) == ErrorCode.NOT_COORDINATOR
            await cluster.stop(first)
            second = await new_coordinator(cluster, KIND, group)
            assert await settled(cluster, second, group) == 10
            assert await commit(cluster, second, group, 12) == 0
            await cluster.start(first)
            await cluster.until_in_sync(KIND.topic)
            await cluster.elect_preferred(KIND.topic, partition_of(cluster, KIND, group))
            third = coordinator_of(cluster, KIND, group)
            assert await settled(cluster, third, group) == 12
            assert await commit(cluster, third, group, 13) == 0
            if second != third:
                assert await commit(cluster, second, group, 14) == ErrorCode.NOT_COORDINATOR

    run_cluster_scenario(tmp_path, scenario)


def test_who_is_asked_for_offsets_in_good_faith_does_not_send_the_client_away(
    tmp_path: Path,
) -> None:
    """librdkafka never asks again after NOT_COORDINATOR."""

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await make_topic(cluster, KIND)
        group = key_at(cluster, KIND, 1)
        assert await commit(cluster, 1, group, 10) == 0
        await cluster.stop(1)
        second = await new_coordinator(cluster, KIND, group)
        (third,) = cluster.others(second)
        await cluster.start(1)
        await cluster.until_in_sync(KIND.topic)
        # One hears that it coordinates the group when the client is there already.
        early = asyncio.ensure_future(committed(cluster, 1, group))
        await asyncio.sleep(0.05)
        assert not early.done()
        await cluster.elect_preferred(KIND.topic, partition_of(cluster, KIND, group))
        assert await early in ((0, 10), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1))
        assert await settled(cluster, 1, group) == 10
        # One has coordinated it a moment ago, and one never has.
        answer = await committed(cluster, second, group)
        assert answer == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
        assert await committed(cluster, third, group) == (ErrorCode.NOT_COORDINATOR, -1)
        assert await commit(cluster, second, group, 11) == ErrorCode.NOT_COORDINATOR

    run_cluster_scenario(tmp_path, scenario)


def test_offsets_can_be_read_when_too_few_replicas_are_in_sync_to_write(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await make_topic(cluster, KIND)
        group = key_at(cluster, KIND, 1)
        assert await commit(cluster, 1, group, 10) == 0
        await cluster.stop(2, 3)
        number = partition_of(cluster, KIND, group)
        await cluster.until(lambda: cluster.partition(KIND.topic, number).isr == (1,))
        assert await commit(cluster, 1, group, 11) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await committed(cluster, 1, group) == (0, 10)

    run_cluster_scenario(tmp_path, scenario)


def test_each_broker_lists_the_groups_that_it_coordinates(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await make_topic(cluster, KIND)
        groups = {each: key_at(cluster, KIND, each) for each in cluster.broker_ids}
        for broker_id, group in groups.items():
            assert await commit(cluster, broker_id, group, 1) == 0
        for broker_id, group in groups.items():
            answer = await cluster.send(broker_id, ListGroupsRequest())
            assert [each.group_id for each in answer.groups] == [group]
            request = DeleteGroupsRequest(groups_names=list(groups.values()))
            answer = await cluster.send(broker_id, request)
            codes = {each.group_id: each.error_code for each in answer.results}
            assert codes.pop(group) == 0
            assert set(codes.values()) == {ErrorCode.NOT_COORDINATOR}

    run_cluster_scenario(tmp_path, scenario)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_go_on_while_their_coordinator_moves(tmp_path: Path, protocol: str) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        await make_topic(cluster, KIND)
        group = key_at(cluster, KIND, 1)
        seen: list[bytes] = []

        async def consume(consumer: AsyncConsumer) -> None:
            async for record in consumer:
                assert record.value is not None
                seen.append(record.value)

        async with (
            AsyncProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer,
            _member(cluster, group, protocol) as first,
            _member(cluster, group, protocol) as second,
        ):
            tasks = [asyncio.ensure_future(consume(each)) for each in (first, second)]
            sent = 0

            async def send_some() -> None:
                nonlocal sent
                for _ in range(20):
                    await producer.send("orders", b"%d" % sent, b"key-%d" % sent)
                    sent += 1
                await producer.flush()
                await cluster.until(lambda: len(set(seen)) == sent)

            try:
                await send_some()
                await cluster.until(
                    lambda: (
                        len(first.assignment() | second.assignment()) == 3
                        and first.assignment()
                        and second.assignment()
                    )
                )
                await cluster.stop(1)
                await send_some()
                moved = coordinator_of(cluster, KIND, group)
                assert moved in (2, 3)
                await cluster.start(1)
                await cluster.until_in_sync(KIND.topic)
                await cluster.elect_preferred(KIND.topic, partition_of(cluster, KIND, group))
                await send_some()
            finally:
                for task in tasks:
                    task.cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in outcomes), outcomes
            assert set(seen) == {b"%d" % number for number in range(sent)}
        # What the members consumed they committed when they left.
        at = coordinator_of(cluster, KIND, group)
        answer = await cluster.send(
            at,
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]),
            FETCH_VERSION,
        )
        offsets = {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in answer.groups[0].topics
            for each in topic.partitions
        }
        assert sum(offsets.values()) == sent

    run_cluster_scenario(tmp_path, scenario, {"group.consumer.heartbeat.interval.ms": "200"})


def test_a_coordinator_that_comes_back_elsewhere_is_found(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[2, 3, 1]])
        await make_topic(cluster, KIND)
        group = key_at(cluster, KIND, 1)
        orders = TopicPartition("orders", 0)
        async with _member(cluster, group, "classic") as consumer:
            async with asyncio.timeout(20):
                while not consumer.assignment():
                    await consumer.poll(0.1)
            await consumer.commit({orders: 5})
            await cluster.stop(1)
            cluster.move_away(1)
            await cluster.start(1)
            await cluster.until_in_sync(KIND.topic)
            await cluster.elect_preferred(KIND.topic, partition_of(cluster, KIND, group))
            # It knows only the old address, and asks for the new one when that leads nowhere.
            async with asyncio.timeout(10):
                await consumer.commit({orders: 6})
            assert await settled(cluster, 1, group) == 6

    run_cluster_scenario(tmp_path, scenario)


def _member(cluster: BrokerCluster, group: str, protocol: str) -> AsyncConsumer:
    settings: dict[str, object] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
    }
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 200
    consumer = AsyncConsumer(settings)
    consumer.subscribe(["orders"])
    return consumer
