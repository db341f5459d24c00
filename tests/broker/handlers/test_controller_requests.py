"""What brokers ask of the controller: producer ids, an orderly end, other in-sync replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from headwater.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headwater.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker


def own_epoch(broker: HandlerBroker) -> int:
    return broker.context.member.broker.broker_epoch


def test_producer_ids_come_in_blocks(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        async def allocate(broker_id: int, epoch: int) -> tuple[int, int, int]:
            answer = await broker.ask(
                AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch),
                AllocateProducerIdsResponse,
            )
            return answer.error_code, answer.producer_id_start, answer.producer_id_len

        epoch = own_epoch(broker)
        broker.become_broker()
        assert await allocate(0, epoch) == (0, 0, 1000)
        assert await allocate(0, epoch) == (0, 1000, 1000)
        assert await allocate(0, epoch + 1) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
        assert await allocate(7, epoch) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0, 0)
        broker.become_broker(7)
        assert await allocate(7, epoch) == (ErrorCode.BROKER_ID_NOT_REGISTERED, 0, 0)

    run_with_broker(tmp_path, scenario)


def test_a_broker_may_stop_when_its_leaderships_are_moved(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        async def beat(epoch: int, *, wants: bool) -> tuple[int, bool, bool]:
            answer = await broker.ask(
                BrokerHeartbeatRequest(broker_id=0, broker_epoch=epoch, want_shut_down=wants),
                BrokerHeartbeatResponse,
            )
            return answer.error_code, answer.is_fenced, answer.should_shut_down

        epoch = own_epoch(broker)
        assert (await beat(epoch, wants=True))[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        broker.become_broker()
        assert await beat(epoch, wants=False) == (0, False, False)
        assert (await beat(epoch - 1, wants=True))[0] == ErrorCode.STALE_BROKER_EPOCH
        assert await beat(epoch, wants=True) == (0, False, True)

    run_with_broker(tmp_path, scenario)


def test_the_controller_decides_who_is_in_sync(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        topic_id = broker.context.image.topics["orders"].topic_id

        async def alter(epoch: int, partition_epoch: int = 0) -> AlterPartitionResponse:
            partition = RequestPartitionData(
                partition_epoch=partition_epoch,
                new_isr_with_epochs=[BrokerState(broker_id=0, broker_epoch=epoch)],
            )
            return await broker.ask(
                AlterPartitionRequest(
                    broker_id=0,
                    broker_epoch=epoch,
                    topics=[RequestTopicData(topic_id=topic_id, partitions=[partition])],
                ),
                AlterPartitionResponse,
            )

        assert (await alter(own_epoch(broker))).error_code == (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
        broker.become_broker()
        answer = await alter(own_epoch(broker))
        (partition,) = answer.topics[0].partitions
        assert (answer.error_code, partition.error_code, partition.isr) == (0, 0, [0])
        answer = await alter(own_epoch(broker), partition_epoch=9)
        assert answer.topics[0].partitions[0].error_code != 0
        for epoch in (own_epoch(broker) + 1, -1):
            assert (await alter(epoch)).error_code == ErrorCode.STALE_BROKER_EPOCH

    run_with_broker(tmp_path, scenario)


def election_codes(answer: ElectLeadersResponse) -> list[tuple[str, list[tuple[int, int]]]]:
    """What is said of each partition, topic by topic as the answer has them."""
    return [
        (topic.topic, [(each.partition_id, each.error_code) for each in topic.partition_result])
        for topic in answer.replica_election_results
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_leader_that_leads_need_not_be_elected(tmp_path: Path, version: int) -> None:
    not_needed, unknown = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        request = ElectLeadersRequest(
            topic_partitions=[
                TopicPartitions(topic="orders", partitions=[0, 0, 1]),
                TopicPartitions(topic="gone", partitions=[0]),
                TopicPartitions(topic="orders", partitions=[0]),
            ]
        )
        answer = await broker.ask(request, ElectLeadersResponse, version=version)
        assert answer.error_code == 0
        # As often as it is named, and where.
        assert election_codes(answer) == [
            ("orders", [(0, not_needed), (0, not_needed), (1, unknown)]),
            ("gone", [(0, unknown)]),
            ("orders", [(0, not_needed)]),
        ]
        # Of all partitions those are not told that need no election; topics are.
        everything = ElectLeadersRequest(topic_partitions=None)
        answer = await broker.ask(everything, ElectLeadersResponse, version=version)
        assert (answer.error_code, election_codes(answer)) == (0, [("orders", [])])

    run_with_broker(tmp_path, scenario)


def test_there_are_two_types_of_elections(tmp_path: Path) -> None:
    invalid = ErrorCode.INVALID_REQUEST

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        named = [TopicPartitions(topic="orders", partitions=[0, 7])]
        for version in (1, 2):
            request = ElectLeadersRequest(election_type=5, topic_partitions=named)
            answer = await broker.ask(request, ElectLeadersResponse, version=version)
            # What is wrong with the request is said of each partition again, as in Kafka.
            assert answer.error_code == invalid
            assert election_codes(answer) == [("orders", [(0, invalid), (7, invalid)])]
            request = ElectLeadersRequest(election_type=5, topic_partitions=None)
            answer = await broker.ask(request, ElectLeadersResponse, version=version)
            assert (answer.error_code, election_codes(answer)) == (invalid, [])
        # Version 0 has no types.
        request = ElectLeadersRequest(election_type=5, topic_partitions=[])
        answer = await broker.ask(request, ElectLeadersResponse, version=0)
        assert (answer.error_code, election_codes(answer)) == (0, [])

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elections_that_take_too_long(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        named = [TopicPartitions(topic="orders", partitions=[0])]
        request = ElectLeadersRequest(topic_partitions=named, timeout_ms=0)
        answer = await broker.ask(request, ElectLeadersResponse, version=version)
        late = ErrorCode.REQUEST_TIMED_OUT
        assert election_codes(answer) == [("orders", [(0, late)])]
        assert answer.error_code == (late if version else 0)

    run_with_broker(tmp_path, scenario)
