"""What clients are told of a cluster: by brokers that lead, that follow, and that have no part."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.handlers.list_offsets import LATEST
from headwater.wire.messages.describe_cluster import DescribeClusterRequest
from headwater.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from headwater.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.running_broker import batch_of, produce_request

NOW_MS = 1_700_000_000_000
PRODUCE_VERSION = 12


async def _produce(cluster: BrokerCluster, at: int, acks: int = -1) -> int:
    request = produce_request("orders", batch_of([b"one"], NOW_MS), acks=acks)
    response = await cluster.send(at, request, PRODUCE_VERSION)
    code: int = response.responses[0].partition_responses[0].error_code
    return code


def test_all_brokers_tell_the_same_of_the_cluster(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2], [2, 3], [3, 1]])
        request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
        answers = [await cluster.send(each, request) for each in cluster.broker_ids]
        for answer in answers:
            assert answer.controller_id == cluster.controller_id
            assert [each.node_id for each in answer.brokers] == [1, 2, 3]
            ports = {each.node_id: each.port for each in answer.brokers}
            assert ports == {
                each: cluster.servers[each].listeners.endpoints[0].port
                for each in cluster.broker_ids
            }
            partitions = answer.topics[0].partitions
            assert [each.leader_id for each in partitions] == [1, 2, 3]
            assert [each.replica_nodes for each in partitions] == [[1, 2], [2, 3], [3, 1]]
        described = [await cluster.send(each, DescribeClusterRequest()) for each in (1, 2, 3)]
        for answer in described:
            assert (answer.error_code, answer.controller_id) == (0, cluster.controller_id)
            assert [each.broker_id for each in answer.brokers] == [1, 2, 3]
            assert not any(each.is_fenced for each in answer.brokers)
        assert len({answer.cluster_id for answer in [*answers, *described]}) == 1

    run_cluster_scenario(tmp_path, scenario)


def test_brokers_that_are_gone_are_told_of_as_offline(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await cluster.create_topic("alone", [[1]])
        await cluster.stop(1)
        await cluster.until(lambda: cluster.leader_of("alone") == -1)
        for broker_id in (2, 3):
            wanted = [MetadataRequestTopic(name=name) for name in ("orders", "alone")]
            answer = await cluster.send(broker_id, MetadataRequest(topics=wanted))
            # One that has just gone is named for a little longer.
            assert [each.node_id for each in answer.brokers] in ([1, 2, 3], [2, 3])
            assert answer.controller_id in (2, 3)
            moved, lost = (topic.partitions[0] for topic in answer.topics)
            assert (moved.error_code, moved.leader_id, moved.leader_epoch) == (0, 2, 1)
            assert (moved.isr_nodes, moved.offline_replicas) == ([2, 3], [1])
            assert lost.error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert (lost.leader_id, lost.isr_nodes, lost.offline_replicas) == (-1, [1], [1])
            told = await cluster.send(broker_id, DescribeTopicPartitionsRequest())
            partitions = {topic.name: topic.partitions[0] for topic in told.topics}
            assert partitions["orders"].error_code == 0
            assert partitions["alone"].error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert [each.offline_replicas for each in partitions.values()] == [[1], [1]]
            while [each.node_id for each in answer.brokers] != [2, 3]:
                await asyncio.sleep(0.1)
                answer = await cluster.send(broker_id, MetadataRequest(topics=wanted))

    run_cluster_scenario(tmp_path, scenario)


def test_only_the_leader_answers_for_a_partition(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2]])
        assert await _produce(cluster, 1) == 0
        codes = [await _ask_leader(cluster, broker_id) for broker_id in cluster.broker_ids]
        refused = {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert codes == [{ErrorCode.NONE}, refused, refused]
        assert await _produce(cluster, 2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await _produce(cluster, 3) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_cluster_scenario(tmp_path, scenario)


async def _ask_leader(cluster: BrokerCluster, broker_id: int) -> set[ErrorCode]:
    """What a broker says to questions about orders-0."""
    offsets = await cluster.send(broker_id, list_offsets())
    producers = await cluster.send(
        broker_id,
        DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])]),
    )
    epochs = await cluster.send(
        broker_id,
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic="orders", partitions=[OffsetForLeaderPartition(partition=0)]
                )
            ]
        ),
    )
    return {
        ErrorCode.from_wire(answer.topics[0].partitions[0].error_code)
        for answer in (offsets, producers, epochs)
    }


def list_offsets(leader_epoch: int = -1) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(timestamp=LATEST, current_leader_epoch=leader_epoch)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=[partition])]
    )


def test_a_client_that_missed_an_election_hears_of_it(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        assert await _produce(cluster, 1) == 0
        await cluster.stop(1)
        await cluster.until(lambda: cluster.leader_of("orders") == 2)
        assert cluster.partition("orders").leader_epoch == 1

        async def ask(leader_epoch: int) -> tuple[int, int]:
            answer = await cluster.send(2, list_offsets(leader_epoch))
            found = answer.topics[0].partitions[0]
            return found.error_code, found.offset

        assert (await ask(0))[0] == ErrorCode.FENCED_LEADER_EPOCH
        assert (await ask(2))[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert await _produce(cluster, 2) == 0
        assert await ask(1) == (0, 2)

    run_cluster_scenario(tmp_path, scenario)


def test_a_new_leader_does_not_tell_an_end_that_it_does_not_know(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        assert await _produce(cluster, 1) == 0
        leader = cluster.context(1).partitions.get("orders", 0)
        assert leader.high_watermark == 1
        # As it is between an election and the first fetch of the followers.
        leader.leader_epoch_start_offset = 5
        for version, expected in (
            (11, ErrorCode.OFFSET_NOT_AVAILABLE),
            (5, ErrorCode.OFFSET_NOT_AVAILABLE),
            (4, ErrorCode.LEADER_NOT_AVAILABLE),
        ):
            answer = await cluster.send(1, list_offsets(), version)
            assert answer.topics[0].partitions[0].error_code == expected
        leader.leader_epoch_start_offset = 1
        answer = await cluster.send(1, list_offsets())
        assert answer.topics[0].partitions[0].offset == 1

    run_cluster_scenario(tmp_path, scenario)


def test_a_broker_describes_its_own_directories(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2], [2, 3], [3, 1]])
        expected = {1: {0, 2}, 2: {0, 1}, 3: {1, 2}}
        for broker_id, numbers in expected.items():
            answer = await cluster.send(broker_id, DescribeLogDirsRequest(topics=None))
            (directory,) = answer.results
            assert f"broker-{broker_id}" in directory.log_dir
            (topic,) = directory.topics
            assert {each.partition_index for each in topic.partitions} == numbers

    run_cluster_scenario(tmp_path, scenario)
