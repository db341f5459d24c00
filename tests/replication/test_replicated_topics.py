"""Three brokers in one process: what replication does for those who write and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import batch_of, read_records
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

TOPIC = "orders"
SETTINGS = {"replica.lag.time.max.ms": "1000"}


def _partition(cluster: BrokerCluster, broker_id: int) -> Partition:
    return cluster.context(broker_id).partitions.get(TOPIC, 0)


async def _produce(
    cluster: BrokerCluster, value: bytes, acks: int = -1, at: int | None = None
) -> ErrorCode:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch_of(value))]
            )
        ],
    )
    leader = cluster.leader_of(TOPIC) if at is None else at
    response = await cluster.send(leader, request, 12)
    return ErrorCode.from_wire(response.responses[0].partition_responses[0].error_code)


def _values(cluster: BrokerCluster, broker_id: int) -> list[bytes | None]:
    return [each.value for each in read_records(_partition(cluster, broker_id).log, 0)]


@pytest.mark.parametrize("session_slots", ["1000", "0"])
def test_what_is_acknowledged_is_everywhere_and_survives_its_leader(
    tmp_path: Path, session_slots: str
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        for number in range(20):
            assert await _produce(cluster, b"%d" % number) is ErrorCode.NONE
        expected = [b"%d" % number for number in range(20)]
        assert all(_values(cluster, each) == expected for each in (1, 2, 3))
        await cluster.stop(1)
        await cluster.until(lambda: cluster.leader_of(TOPIC) in (2, 3))
        assert await _produce(cluster, b"later") is ErrorCode.NONE
        assert all(_values(cluster, each) == [*expected, b"later"] for each in (2, 3))
        await cluster.start(1)
        await cluster.until_in_sync(TOPIC)
        await cluster.until(lambda: _values(cluster, 1) == [*expected, b"later"])

    # Followers fetch in sessions, or name all partitions each time where there is no room for any.
    slots = {"max.incremental.fetch.session.cache.slots": session_slots}
    run_cluster_scenario(tmp_path, scenario, {**SETTINGS, **slots})


def test_only_the_leader_is_written_to_and_serves_readers_who_know_no_racks(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, b"value")
        assert await _produce(cluster, b"x", at=2) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        request = FetchRequest(
            max_wait_ms=0,
            topics=[
                FetchTopic(
                    topic=TOPIC,
                    topic_id=_partition(cluster, 1).topic_id,
                    partitions=[FetchPartition(partition=0, partition_max_bytes=1_000)],
                )
            ],
        )
        for broker_id, code in ((1, ErrorCode.NONE), (2, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
            [data] = (await cluster.send(broker_id, request, 10)).responses[0].partitions
            assert data.error_code == code
        request.topics[0].partitions[0].current_leader_epoch = 0
        await cluster.stop(1)
        await cluster.until(lambda: _partition(cluster, 3).leader == 2)
        response = await cluster.send(3, request, 17)
        [data] = response.responses[0].partitions
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert data.current_leader.leader_id == 2
        [endpoint] = response.node_endpoints
        host, port = cluster.servers[2].listeners.endpoints[0][1:]
        assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, host, port)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_a_follower_that_is_stuck_leaves_and_comes_back(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        assert await _produce(cluster, b"first") is ErrorCode.NONE
        follower = cluster.context(3).replication.fetchers
        follower.removed(_partition(cluster, 3))
        # The answer waits until the controller has taken the third out.
        assert await _produce(cluster, b"second") is ErrorCode.NONE
        assert sorted(cluster.partition(TOPIC).isr) == [1, 2]
        assert _values(cluster, 3) == [b"first"]
        follower.role_changed(_partition(cluster, 3))
        await cluster.until_in_sync(TOPIC)
        assert _values(cluster, 3) == [b"first", b"second"]
        changes = cluster.context(1).replication.isr_changes
        assert (changes.isr_shrinks, changes.isr_expands) == (1, 1)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_too_few_in_sync_replicas_take_no_acks_all(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
        await cluster.stop(2, 3)
        await cluster.until(lambda: cluster.partition(TOPIC).isr == (1,))
        await cluster.until(lambda: _partition(cluster, 1).isr == (1,))
        assert await _produce(cluster, b"refused") is ErrorCode.NOT_ENOUGH_REPLICAS
        assert await _produce(cluster, b"taken", acks=1) is ErrorCode.NONE
        assert _partition(cluster, 1).high_watermark == 0
        await cluster.start(2)
        await cluster.until(lambda: _partition(cluster, 1).high_watermark == 1)
        assert await _produce(cluster, b"taken, too") is ErrorCode.NONE

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_one_that_is_left_serves_alone_if_that_is_enough(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "1"})
        await cluster.stop(1, 2)
        assert await _produce(cluster, b"alone", at=3) is ErrorCode.NONE
        log = _partition(cluster, 3).log
        assert log.flushed_offset == log.log_end_offset == 1

    run_cluster_scenario(tmp_path, scenario, {**SETTINGS, "acks.all.flush": "auto"})


def test_deleted_records_are_gone_when_all_live_replicas_have_dropped_them(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        for _ in range(5):
            assert await _produce(cluster, b"value") is ErrorCode.NONE
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=3)]
                )
            ],
            timeout_ms=10_000,
        )
        response = await cluster.send(1, request)
        [result] = response.topics[0].partitions
        assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3)
        assert [_partition(cluster, each).log_start_offset for each in (1, 2, 3)] == [3, 3, 3]

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_a_leader_whose_disk_fails_hands_over(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        assert await _produce(cluster, b"first") is ErrorCode.NONE
        _partition(cluster, 1).log.fail(OSError(5, "the disk is gone"))
        assert await _produce(cluster, b"lost", at=1) is ErrorCode.KAFKA_STORAGE_ERROR
        await cluster.until(lambda: cluster.leader_of(TOPIC) in (2, 3))
        assert sorted(cluster.partition(TOPIC).isr) == [2, 3]
        # It follows the others from now on, and does not ask for what it cannot write.
        follower = cluster.context(1).replication.fetchers
        await cluster.until(lambda: follower.failed_partitions == 1)
        assert await _produce(cluster, b"second") is ErrorCode.NONE
        assert sorted(cluster.partition(TOPIC).isr) == [2, 3]

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_nobody_waits_for_a_follower_whose_disk_fails(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        assert await _produce(cluster, b"first") is ErrorCode.NONE
        _partition(cluster, 3).log.fail(OSError(5, "the disk is gone"))
        # The answer does not wait for `replica.lag.time.max.ms`: the follower itself gives way.
        assert await _produce(cluster, b"second") is ErrorCode.NONE
        assert sorted(cluster.partition(TOPIC).isr) == [1, 2]

    run_cluster_scenario(tmp_path, scenario, {"replica.lag.time.max.ms": "60000"})


def test_brokers_that_stop_together_come_back_with_all(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        for number in range(5):
            assert await _produce(cluster, b"%d" % number) is ErrorCode.NONE
        await cluster.stop(3, 2, 1)
        await cluster.start()
        await cluster.until_in_sync(TOPIC)
        assert await _produce(cluster, b"5") is ErrorCode.NONE
        expected = [b"%d" % number for number in range(6)]
        assert all(_values(cluster, each) == expected for each in (1, 2, 3))

    run_cluster_scenario(tmp_path, scenario, SETTINGS)
