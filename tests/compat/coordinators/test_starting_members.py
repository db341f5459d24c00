"""Members that ask for committed offsets while their coordinator cannot tell them.

A client may hang for ever if it gets an error that it does not ask again after. librdkafka does so
after NOT_COORDINATOR, with any broker.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.client.producer.async_producer import AsyncProducer
from headwater.cluster.member import ClusterMember
from headwater.coordinator.group.offsets.commit import NewOffset
from headwater.coordinator.outcome import ProducerIdentity
from headwater.wire.api_keys import ApiKey
from headwater.wire.records import ControlType
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.moving_coordinators import (
    key_at,
    make_topic,
    new_coordinator,
    partition_of,
)
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import GroupMember, Membership
from tests.support.other_clients.groups.headwater import HeadwaterMember
from tests.support.other_clients.groups.polling import PolledMember
from tests.support.worlds.offset_world import OUTSIDER

KIND = CoordinatorKind.GROUP
ORDERS = TopicPartition("orders", 0)
RECORD_COUNT = 4
#: Of a client that asks again, and not only once.
REFUSAL_COUNT = 2
#: Longer than a test takes.
RARE_HEARTBEAT_MS = 10_000

Protocol = Literal["classic", "consumer"]

#: All others are with `cluster_process/test_zookeeper_silence.py`, on a real store.
CLIENTS = [
    pytest.param(ConfluentMember, "classic", id="librdkafka"),
    pytest.param(ConfluentMember, "consumer", id="librdkafka-consumer"),
    pytest.param(HeadwaterMember, "classic", id="own", marks=pytest.mark.full),
    pytest.param(HeadwaterMember, "consumer", id="own-consumer", marks=pytest.mark.full),
]


@asynccontextmanager
async def joined(
    cluster: BrokerCluster, client: type[GroupMember], group: str, protocol: Protocol
) -> AsyncIterator[PolledMember]:
    membership = Membership(group, ("orders",), protocol=protocol, isolation="read_committed")
    member = PolledMember(client, cluster.bootstrap, membership)
    try:
        yield member
    finally:
        # The brokers that it takes its leave of are on this loop.
        await asyncio.to_thread(member.close)


async def write_records(cluster: BrokerCluster) -> None:
    await cluster.create_topic("orders", [[1, 2, 3]])
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        for number in range(RECORD_COUNT):
            await producer.send("orders", b"%d" % number)


async def until_refused(
    cluster: BrokerCluster, broker_id: int, member: PolledMember, code: ErrorCode
) -> None:
    errors = cluster.context(broker_id).metrics.errors
    wanted = errors.get((ApiKey.OFFSET_FETCH, code), 0) + REFUSAL_COUNT

    def is_refused() -> bool:
        member.check()
        return errors.get((ApiKey.OFFSET_FETCH, code), 0) >= wanted

    await cluster.until(is_refused)


async def until_read(cluster: BrokerCluster, member: PolledMember, count: int) -> None:
    def have_come() -> bool:
        member.check()
        return len(member.records) >= count

    await cluster.until(have_come)
    assert len(member.records) == count


@pytest.mark.parametrize(("client", "protocol"), CLIENTS)
def test_a_coordinator_that_may_have_been_replaced_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: type[GroupMember], protocol: Protocol
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await write_records(cluster)
        await make_topic(cluster, KIND)
        with monkeypatch.context() as doubt:
            doubt.setattr(ClusterMember, "is_up_to_date", False)
            group = key_at(cluster, KIND, 1)
            async with joined(cluster, client, group, protocol) as member:
                await until_refused(cluster, 1, member, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                assert not member.records
                doubt.undo()
                await until_read(cluster, member, RECORD_COUNT)

    run_cluster_scenario(tmp_path, scenario)


@pytest.mark.parametrize(("client", "protocol"), CLIENTS)
def test_a_coordinator_that_has_moved_before_its_members_hear_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: type[GroupMember], protocol: Protocol
) -> None:
    """A transaction on the offsets is open, so that the member asks before and after the move."""
    monkeypatch.setattr(sys.modules[client.__module__], "HEARTBEAT_MS", RARE_HEARTBEAT_MS)

    async def scenario(cluster: BrokerCluster) -> None:
        await write_records(cluster)
        await make_topic(cluster, KIND)
        group = key_at(cluster, KIND, 1)
        await cluster.stop(1)
        second = await new_coordinator(cluster, KIND, group)
        await cluster.start(1)
        await cluster.until_in_sync(KIND.topic)
        producer = ProducerIdentity(7, 0)
        await cluster.context(second).groups.loaded()
        await cluster.context(second).groups.write(
            group,
            lambda shard, now_ms: shard.offsets.commit_in_transaction(
                group, OUTSIDER, producer, [NewOffset(ORDERS, 1)], now_ms, api_version=5
            ),
        )
        async with joined(cluster, client, group, protocol) as member:
            await until_refused(cluster, second, member, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            await cluster.elect_preferred(KIND.topic, partition_of(cluster, KIND, group))
            await until_refused(cluster, second, member, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            # No heartbeat tells the member where to go, but that it is left alone does.
            await cluster.stop(second)
            await until_refused(cluster, 1, member, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            groups = cluster.context(1).groups
            await groups.end_transaction(
                groups.partition_of(group), producer, ControlType.COMMIT, 0
            )
            await until_read(cluster, member, RECORD_COUNT - 1)

    run_cluster_scenario(
        tmp_path, scenario, {"group.consumer.heartbeat.interval.ms": str(RARE_HEARTBEAT_MS)}
    )
