"""What the controller does, asked of brokers that are not the controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import ZERO_TOPIC_ID
from headwater.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headwater.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario


def _request(name: str, *, validate_only: bool = False, factor: int = 3) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=2,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name="retention.ms", value="7777")],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=validate_only)


def test_any_broker_creates_topics_and_knows_them_at_once(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        for broker_id in cluster.broker_ids:
            for version in (2, 4, 5, 7):
                name = f"topic-{broker_id}-{version}"
                response = await cluster.send(broker_id, _request(name), version)
                (topic,) = response.topics
                assert (topic.error_code, topic.error_message) == (0, None)
                image = cluster.context(broker_id).image
                assert len(image.topics[name].partitions) == 2
                assert (topic.topic_id == image.topics[name].topic_id) == (version >= 7)
                if version >= 5:
                    assert (topic.num_partitions, topic.replication_factor) == (2, 3)
                    configs = {each.name: each.value for each in topic.configs}
                    assert configs["retention.ms"] == "7777"

    run_cluster_scenario(tmp_path, scenario)


def test_what_the_controller_refuses_is_told_by_whoever_was_asked(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other, *_) = cluster.others(cluster.controller_id)
        checked = await cluster.send(other, _request("orders", validate_only=True))
        assert (checked.topics[0].error_code, checked.topics[0].topic_id) == (0, ZERO_TOPIC_ID)
        assert "orders" not in cluster.image.topics
        await cluster.send(other, _request("orders"))
        again = await cluster.send(other, _request("orders"))
        assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert "orders" in (again.topics[0].error_message or "")
        many = await cluster.send(other, _request("many", factor=4))
        assert many.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR

    run_cluster_scenario(tmp_path, scenario)


def test_topics_grow_and_go_wherever_that_is_asked_for(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        first, second = cluster.others(cluster.controller_id)
        for name in ("one", "two", "three"):
            await cluster.create_topic(name, [[1, 2, 3]], at=first)
        growth = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="one", count=4, assignments=None)],
            timeout_ms=10_000,
        )
        response = await cluster.send(second, growth)
        assert [each.error_code for each in response.results] == [0]
        assert len(cluster.context(second).image.topics["one"].partitions) == 4
        # By name, in a version that knows no ids, and one that is not there.
        request = DeleteTopicsRequest(topic_names=["one", "four"], timeout_ms=10_000)
        response = await cluster.send(first, request, 4)
        assert {each.name: each.error_code for each in response.responses} == {
            "one": 0,
            "four": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert set(cluster.context(first).image.topics) == {"two", "three"}
        # By name and by id.
        topic_id = cluster.image.topics["three"].topic_id
        wanted = [DeleteTopicState(name="two"), DeleteTopicState(name=None, topic_id=topic_id)]
        response = await cluster.send(second, DeleteTopicsRequest(topics=wanted, timeout_ms=10_000))
        assert [(each.name, each.error_code) for each in response.responses] == [
            ("two", 0),
            ("three", 0),
        ]
        assert not cluster.context(second).image.topics

    run_cluster_scenario(tmp_path, scenario)


def test_a_topic_that_is_produced_to_comes_into_being_at_any_broker(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        for broker_id in cluster.broker_ids:
            name = f"new-{broker_id}"
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            response = await cluster.send(broker_id, request)
            (topic,) = response.topics
            assert topic.error_code == 0
            assert [len(each.replica_nodes) for each in topic.partitions] == [3]

    run_cluster_scenario(tmp_path, scenario)


def test_leaders_are_elected_wherever_that_is_asked_for(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1]])
        await cluster.stop(1)
        await cluster.until(lambda: cluster.leader_of("orders") == 2)
        await cluster.start(1)
        await cluster.until_in_sync("orders")
        (other, *_) = cluster.others(cluster.controller_id)
        asked = [TopicPartitions(topic="orders", partitions=[0, 1, 7])]
        response = await cluster.send(other, ElectLeadersRequest(topic_partitions=asked))
        (topic,) = response.replica_election_results
        assert {each.partition_id: each.error_code for each in topic.partition_result} == {
            0: 0,
            1: ErrorCode.ELECTION_NOT_NEEDED,
            7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert cluster.leader_of("orders") == 1
        # All partitions: what needs no election is not worth telling.
        response = await cluster.send(other, ElectLeadersRequest(topic_partitions=None))
        (topic,) = response.replica_election_results
        assert (response.error_code, topic.topic, topic.partition_result) == (0, "orders", [])
        response = await cluster.send(
            other, ElectLeadersRequest(election_type=9, topic_partitions=None)
        )
        assert response.error_code == ErrorCode.INVALID_REQUEST

    run_cluster_scenario(tmp_path, scenario)


def test_no_two_brokers_hand_out_the_same_producer_id(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        async def ids(broker_id: int) -> list[int]:
            found = []
            request = InitProducerIdRequest(transactional_id=None)
            for _ in range(5):
                response = await cluster.send(broker_id, request)
                assert response.error_code == 0
                found.append(response.producer_id)
            return found

        found = await asyncio.gather(*(ids(broker_id) for broker_id in cluster.broker_ids))
        blocks = [{producer_id // 1000 for producer_id in each} for each in found]
        assert sorted(len(each) for each in blocks) == [1, 1, 1]
        assert len(set.union(*blocks)) == 3

    run_cluster_scenario(tmp_path, scenario)


def test_a_controller_that_falls_silent_is_waited_for_until_there_is_another(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        controller_id = cluster.controller_id
        first, second = cluster.others(controller_id)
        await cluster.send(first, _request("before"))
        cluster.silence(controller_id)
        requests = [
            asyncio.ensure_future(cluster.send(first, _request("after", factor=2))),
            asyncio.ensure_future(
                cluster.send(second, InitProducerIdRequest(transactional_id=None))
            ),
        ]
        done, _ = await asyncio.wait(requests, timeout=1.5)
        assert not done
        await cluster.expire(controller_id)
        async with asyncio.timeout(15):
            created, initialised = await asyncio.gather(*requests)
        assert [each.error_code for each in created.topics] == [0]
        assert initialised.error_code == 0
        await cluster.until(lambda: "after" in cluster.context(second).image.topics)

    run_cluster_scenario(tmp_path, scenario)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_when_the_controller_goes_the_next_one_is_asked(tmp_path: Path, is_stopped: bool) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        controller_id = cluster.controller_id
        (other, *_) = cluster.others(controller_id)
        await cluster.send(other, _request("before"))
        if is_stopped:
            await cluster.stop(controller_id)
        else:
            await cluster.expire(controller_id)
        response = await cluster.send(other, _request("after", factor=2))
        assert [each.error_code for each in response.topics] == [0]
        assert {"before", "after"} <= set(cluster.context(other).image.topics)
        await cluster.until(lambda: cluster.controller_id)

    run_cluster_scenario(tmp_path, scenario)
