"""Transactions whose leader, coordinator and controller are three brokers, and move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.producer.async_producer import AsyncProducer
from headwater.coordinator.txn.transaction_metadata import TransactionState
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.moving_coordinators import (
    coordinator_of,
    key_at,
    make_topic,
    new_coordinator,
    partition_of,
)

KIND = CoordinatorKind.TRANSACTION
GROUPS = CoordinatorKind.GROUP
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
FETCH_VERSION = 9


def producer_of(cluster: BrokerCluster, transactional_id: str) -> AsyncProducer:
    return AsyncProducer(
        bootstrap_servers=cluster.bootstrap,
        transactional_id=transactional_id,
        retry_backoff_ms=20,
    )


async def committed_values(cluster: BrokerCluster, count: int) -> list[bytes]:
    """What a reader of committed records finds in `orders` until it has that many, and no more."""
    partitions = len(cluster.image.topics["orders"].partitions)
    async with AsyncConsumer(
        bootstrap_servers=cluster.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.assign([TopicPartition("orders", number) for number in range(partitions)])
        found: list[bytes] = []
        async with asyncio.timeout(30):
            while len(found) < count:
                found += [record.value or b"" for record in await consumer.poll(0.2)]
        found += [record.value or b"" for record in await consumer.poll(0.3)]
        return found


def three_brokers(cluster: BrokerCluster) -> tuple[int, int, int]:
    """Controller, coordinator and leader."""
    controller = cluster.controller_id
    coordinator, leader = cluster.others(controller)
    return controller, coordinator, leader


async def prepare(cluster: BrokerCluster) -> str:
    """Topics in place; returns a transactional id whose coordinator is neither of the others."""
    await make_topic(cluster, KIND)
    controller, coordinator, leader = three_brokers(cluster)
    await cluster.create_topic(
        "orders", [[leader, controller, coordinator], [controller, leader, coordinator]]
    )
    return key_at(cluster, KIND, coordinator)


def test_leader_coordinator_and_controller_are_three_brokers(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        transactional_id = await prepare(cluster)
        async with producer_of(cluster, transactional_id) as producer:
            await producer.init_transactions()
            for number in range(3):
                await producer.begin_transaction()
                for partition in (0, 1):
                    await producer.send("orders", b"%d" % number, partition=partition)
                if number == 1:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        assert sorted(await committed_values(cluster, 4)) == [b"0", b"0", b"2", b"2"]

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


async def stop_controller(cluster: BrokerCluster, _: str) -> None:
    controller = cluster.controller_id
    await cluster.stop(controller)
    await cluster.until(lambda: cluster.controller_id)


async def stop_coordinator(cluster: BrokerCluster, transactional_id: str) -> None:
    await cluster.stop(coordinator_of(cluster, KIND, transactional_id))
    await new_coordinator(cluster, KIND, transactional_id)


async def stop_leader(cluster: BrokerCluster, _: str) -> None:
    await cluster.stop(cluster.leader_of("orders"))
    await cluster.until(lambda: cluster.leader_of("orders") in cluster.servers)


async def bounce_coordinator(cluster: BrokerCluster, transactional_id: str) -> None:
    """It is elsewhere for a while, and then where it was, in a later leader epoch."""
    number = partition_of(cluster, KIND, transactional_id)
    first = coordinator_of(cluster, KIND, transactional_id)
    await stop_coordinator(cluster, transactional_id)
    await cluster.start(first)
    await cluster.until_in_sync(KIND.topic)
    await cluster.elect_preferred(KIND.topic, number)


async def expire_coordinator(cluster: BrokerCluster, transactional_id: str) -> None:
    await cluster.expire(coordinator_of(cluster, KIND, transactional_id))
    await new_coordinator(cluster, KIND, transactional_id)


Move = Callable[[BrokerCluster, str], Awaitable[None]]
MOVES: list[Move] = [
    stop_controller,
    stop_coordinator,
    stop_leader,
    bounce_coordinator,
    expire_coordinator,
]


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_a_transaction_goes_on_when_a_broker_of_it_moves(
    tmp_path: Path, move: Move, commits: bool
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        transactional_id = await prepare(cluster)
        async with producer_of(cluster, transactional_id) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            for partition in (0, 1):
                await producer.send("orders", b"before", partition=partition)
            await producer.flush()
            await move(cluster, transactional_id)
            for partition in (0, 1):
                await producer.send("orders", b"after", partition=partition)
            if commits:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send("orders", b"last", partition=0)
            await producer.commit_transaction()
        expected = [b"last"]
        if commits:
            expected += [b"before", b"before", b"after", b"after"]
        assert sorted(await committed_values(cluster, len(expected))) == sorted(expected)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def transaction_state(
    cluster: BrokerCluster, coordinator: int, transactional_id: str
) -> TransactionState:
    (metadata,) = (
        metadata
        for shard in cluster.context(coordinator).transactions.shards()
        if (metadata := shard.transactions.find(transactional_id)) is not None
    )
    return metadata.state


def test_markers_reach_the_successor_of_a_leader_that_fell_silent(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        transactional_id = await prepare(cluster)
        _, coordinator, leader = three_brokers(cluster)
        async with producer_of(cluster, transactional_id) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"one", partition=0)
            cluster.silence(leader)
            await producer.commit_transaction()
            assert transaction_state(cluster, coordinator, transactional_id).is_prepared
            await cluster.expire(leader)
            await cluster.until(lambda: cluster.leader_of("orders") in cluster.others(leader))
            successor = cluster.context(cluster.leader_of("orders"))
            partition = successor.partitions.get("orders", 0)
            await cluster.until(lambda: partition.last_stable_offset == 2, timeout_s=10)
            await cluster.until(
                lambda: transaction_state(cluster, coordinator, transactional_id).is_idle,
                timeout_s=10,
            )

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_a_new_producer_fences_the_old_one_at_the_new_coordinator(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        transactional_id = await prepare(cluster)
        async with producer_of(cluster, transactional_id) as old:
            await old.init_transactions()
            await old.begin_transaction()
            await old.send_and_wait("orders", b"lost", partition=0)
            await stop_coordinator(cluster, transactional_id)
            async with producer_of(cluster, transactional_id) as new:
                await new.init_transactions()
                await new.begin_transaction()
                await new.send_and_wait("orders", b"kept", partition=0)
                await new.commit_transaction()
            with pytest.raises(Exception, match="taken over"):
                await old.commit_transaction()
        assert await committed_values(cluster, 1) == [b"kept"]

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


@pytest.mark.parametrize("moves_groups", [True, False])
def test_offsets_of_a_transaction_survive_the_move_of_either_coordinator(
    tmp_path: Path, moves_groups: bool
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        transactional_id = await prepare(cluster)
        await make_topic(cluster, GROUPS)
        _, coordinator, leader = three_brokers(cluster)
        group = key_at(cluster, GROUPS, leader)
        source = TopicPartition("orders", 1)
        async with producer_of(cluster, transactional_id) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("orders", b"one", partition=0)
            await producer.send_offsets_to_transaction({source: 5}, GroupIdentity(group))
            await cluster.stop(leader if moves_groups else coordinator)
            await new_coordinator(cluster, GROUPS, group)
            await new_coordinator(cluster, KIND, transactional_id)
            await producer.send_offsets_to_transaction({source: 7}, GroupIdentity(group))
            await producer.commit_transaction()
        offset = await _stable_offset(cluster, group)
        assert offset == 7
        assert await committed_values(cluster, 1) == [b"one"]

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


async def _stable_offset(cluster: BrokerCluster, group: str) -> int:
    """What the group has committed, once no transaction stands in front of it."""
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=True
    )
    async with asyncio.timeout(20):
        while True:
            at = coordinator_of(cluster, GROUPS, group)
            (answer,) = (await cluster.send(at, request, FETCH_VERSION)).groups
            found = [
                partition
                for topic in answer.topics
                for partition in topic.partitions
                if not partition.error_code
            ]
            if not answer.error_code and found:
                offset: int = found[0].committed_offset
                return offset
            await asyncio.sleep(0.01)
