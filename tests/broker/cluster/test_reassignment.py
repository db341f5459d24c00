"""Partitions that move to other brokers while they are written to and read from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from headwater import AsyncAdmin, AsyncConsumer, AsyncProducer, TopicPartition, errors
from headwater.client.admin import require_all
from headwater.client.admin.reassignments import PartitionReassignment
from headwater.sim.campaigns.logs import read_records
from headwater.storage.partition_log import PartitionLog
from headwater.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

TOPIC = "orders"
FOUR = (1, 2, 3, 4)
SETTINGS = {"replica.lag.time.max.ms": "2000"}


class _Writer:
    """Writes numbers with acks=all until it is stopped, and knows which were acknowledged."""

    def __init__(self, partition_count: int) -> None:
        self.acknowledged: dict[int, list[bytes]] = {each: [] for each in range(partition_count)}
        self.is_stopped = False

    async def run(self, bootstrap: str) -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap, acks="all") as producer:
            number = 0
            while not self.is_stopped:
                for partition, values in self.acknowledged.items():
                    value = b"%d" % number
                    await (await producer.send(TOPIC, value=value, partition=partition))
                    values.append(value)
                    number += 1

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))


@asynccontextmanager
async def _load(cluster: BrokerCluster, partition_count: int) -> AsyncIterator[_Writer]:
    writer = _Writer(partition_count)
    task = asyncio.ensure_future(writer.run(cluster.bootstrap))
    try:
        await cluster.until(lambda: writer.count >= 20)
        yield writer
        count = writer.count
        await cluster.until(lambda: writer.count >= count + 20)
    finally:
        writer.is_stopped = True
        await task


def _is_at_rest(cluster: BrokerCluster, targets: dict[int, list[int]]) -> bool:
    """Whether every broker sees the partitions where they shall be, whole, and has no others."""
    return all(
        list(partition.replicas) == target
        and set(partition.isr) == set(target)
        and not partition.is_moving
        and (server.context.partitions.find(TOPIC, number) is not None) == (broker_id in target)
        for broker_id, server in cluster.servers.items()
        for number, target in targets.items()
        for partition in [server.context.image.topics[TOPIC].partitions[number]]
    )


def _have_one_end(logs: list[PartitionLog]) -> bool:
    return len({(log.log_end_offset, log.high_watermark) for log in logs}) == 1


async def _check_copies(
    cluster: BrokerCluster, targets: dict[int, list[int]], writer: _Writer
) -> None:
    """All that was acknowledged is in every copy, once and in order; nobody else has files."""
    for number, target in targets.items():
        logs = [cluster.context(each).partitions.get(TOPIC, number).log for each in target]
        await cluster.until(partial(_have_one_end, logs))
        expected = writer.acknowledged[number]
        for log in logs:
            assert [each.value for each in read_records(log, 0)] == expected
        for broker_id in cluster.servers:
            directory = cluster.log_directory(broker_id) / f"{TOPIC}-{number}"
            assert directory.exists() == (broker_id in target)


def _moves(targets: dict[int, list[int]]) -> dict[TopicPartition, list[int]]:
    return {TopicPartition(TOPIC, number): target for number, target in targets.items()}


def test_every_partition_moves_under_load(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2], [2, 3], [3, 1]])
        targets = {0: [3, 4], 1: [4, 1], 2: [2, 4]}
        async with (
            AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin,
            _load(cluster, 3) as writer,
        ):
            await admin.alter_partition_reassignments(_moves(targets))
            await cluster.until(lambda: _is_at_rest(cluster, targets))
            assert await admin.list_partition_reassignments() == {}
        # The first of the new replicas is the one that is to lead.
        assert [cluster.leader_of(TOPIC, number) for number in range(3)] == [3, 4, 2]
        await _check_copies(cluster, targets, writer)

    run_cluster_scenario(tmp_path, scenario, SETTINGS, FOUR)


def test_one_replica_becomes_three_and_one_again_elsewhere(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        # Also while more are asked for than there are, a raised factor refuses nobody on the way.
        await cluster.create_topic(TOPIC, [[1]], {"min.insync.replicas": "2"})
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            async with _load(cluster, 1) as writer:
                for target in ([1, 2, 3], [3, 4], [2]):
                    await admin.alter_partition_reassignments(_moves({0: target}))
                    await cluster.until(partial(_is_at_rest, cluster, {0: target}))
            await _check_copies(cluster, {0: [2]}, writer)
            with pytest.raises(errors.NoReassignmentInProgressError):
                await admin.alter_partition_reassignments({TopicPartition(TOPIC, 0): None})

    run_cluster_scenario(tmp_path, scenario, {**SETTINGS, "acks.all.flush": "auto"}, FOUR)


def test_a_move_to_a_dead_broker_is_cancelled_or_turned_around(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("held", [[4, 1]])
        await cluster.create_topic(TOPIC, [[1, 2]])
        name = TopicPartition(TOPIC, 0)
        async with (
            AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin,
            _load(cluster, 1) as writer,
        ):
            await cluster.stop(4)
            await admin.alter_partition_reassignments({name: [3, 4]})
            await cluster.until(lambda: 3 in cluster.partition(TOPIC).isr)
            moving = (await admin.list_partition_reassignments([name]))[name]
            assert moving == PartitionReassignment((3, 4, 1, 2), (3, 4), (1, 2))
            await admin.alter_partition_reassignments({name: None})
            await cluster.until(lambda: _is_at_rest(cluster, {0: [1, 2]}))
            await admin.alter_partition_reassignments({name: [4, 3]})
            await admin.alter_partition_reassignments({name: [3, 1]})
            await cluster.until(lambda: _is_at_rest(cluster, {0: [3, 1]}))
        await _check_copies(cluster, {0: [3, 1]}, writer)

    run_cluster_scenario(tmp_path, scenario, SETTINGS, FOUR)


def test_the_controller_changes_in_the_middle(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("held", [[4, 1]])
        await cluster.create_topic(TOPIC, [[1, 2, 3]] * 4)
        targets = {number: [4, 3, 2] for number in range(4)}
        async with (
            AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin,
            _load(cluster, 4) as writer,
        ):
            # The one who is to get it all is not there, so that the move is sure to last.
            await cluster.stop(4)
            await admin.alter_partition_reassignments(_moves(targets))
            controller_id = cluster.controller_id
            await cluster.expire(controller_id)
            await cluster.until(lambda: cluster.controller_id != controller_id)
            assert len(await admin.list_partition_reassignments()) == 4
            await cluster.start(4)
            await cluster.until(lambda: _is_at_rest(cluster, targets))
        await _check_copies(cluster, targets, writer)

    run_cluster_scenario(tmp_path, scenario, SETTINGS, FOUR)


def test_groups_go_on_while_their_coordinators_move(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2]])
        async with (
            AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin,
            AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer,
            AsyncConsumer(
                bootstrap_servers=cluster.bootstrap, group_id="g", auto_offset_reset="earliest"
            ) as consumer,
        ):
            consumer.subscribe([TOPIC])
            await (await producer.send(TOPIC, value=b"first"))
            await _read_and_commit(consumer, b"first")
            offsets = cluster.image.topics["__consumer_offsets"].partitions
            moves = {
                TopicPartition("__consumer_offsets", number): [
                    each for each in FOUR if each != partition.leader
                ]
                for number, partition in enumerate(offsets)
            }
            await admin.alter_partition_reassignments(moves)
            await cluster.until(
                lambda: all(
                    sorted(cluster.partition(*name).replicas) == sorted(target)
                    for name, target in moves.items()
                )
            )
            await (await producer.send(TOPIC, value=b"second"))
            await _read_and_commit(consumer, b"second")
            committed = require_all(await admin.list_group_offsets(["g"]))["g"]
            assert committed[TopicPartition(TOPIC, 0)].offset == 2

    run_cluster_scenario(tmp_path, scenario, SETTINGS, FOUR)


async def _read_and_commit(consumer: AsyncConsumer, value: bytes) -> None:
    async with asyncio.timeout(30):
        while True:
            for record in await consumer.poll(0.5):
                assert record.value == value
                await consumer.commit()
                return


def test_a_list_of_moves_names_what_moves_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("held", [[2, 1]])
        await cluster.create_topic(TOPIC, [[1], [1]])
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            await cluster.stop(2)
            await admin.alter_partition_reassignments({TopicPartition(TOPIC, 1): [2]})
        (broker_id,) = cluster.others(cluster.controller_id)[:1] or [cluster.controller_id]
        for topics in (
            None,
            [
                ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=[0, 1, 1, 9, -1]),
                ListPartitionReassignmentsTopics(name="absent", partition_indexes=[0]),
            ],
        ):
            request = ListPartitionReassignmentsRequest(topics=topics)
            answer = await cluster.send(broker_id, request)
            assert answer.error_code == 0
            told = [
                (topic.name, each.partition_index, each.replicas, each.adding_replicas)
                for topic in answer.topics
                for each in topic.partitions
            ]
            assert told == [(TOPIC, 1, [2, 1], [2])]

    run_cluster_scenario(tmp_path, scenario, SETTINGS)
