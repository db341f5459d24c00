"""What measurements ask a cluster beside the load itself: topics, leaders, who is in sync."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar

from bench.broker.raw_client import wait_until
from bench.cluster.clusters import BROKER_IDS, Cluster
from bench.cluster.sizes import REPLICATION_FACTOR
from headwater.base.errors import KafkaError
from headwater.client.admin import AdminOperations, NewTopic, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo

Result = TypeVar("Result")

_TIMEOUT_S = 600.0
_REQUEST_TIMEOUT_S = 60.0
_PAUSE_S = 0.1
_topic_numbers = itertools.count(1)


def ask(cluster: Cluster, work: Callable[[AdminOperations], Awaitable[Result]]) -> Result:
    """Let an administrator of the cluster do something."""

    async def connect_and_work() -> Result:
        async with ClusterConnection(cluster.bootstrap, timeout_s=_REQUEST_TIMEOUT_S) as connection:
            return await work(AdminOperations(connection))

    return asyncio.run(connect_and_work())


def look(cluster: Cluster, question: Callable[[AdminOperations], Awaitable[Result]]) -> Result:
    """The same for what may be asked again, for a minute, if brokers are just coming or going."""
    deadline_s = time.monotonic() + _REQUEST_TIMEOUT_S
    while True:
        try:
            return ask(cluster, question)
        except (KafkaError, OSError):
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)


def create_topics(
    cluster: Cluster, names: list[str], partition_count: int, configs: Mapping[str, str]
) -> None:
    async def create(admin: AdminOperations) -> None:
        topics = [
            NewTopic(
                name,
                partition_count=partition_count,
                replication_factor=REPLICATION_FACTOR,
                configs=dict(configs),
            )
            for name in names
        ]
        require_all(await admin.create_topics(topics))

    ask(cluster, create)


@contextlib.contextmanager
def topic(cluster: Cluster, name: str, partition_count: int) -> Iterator[str]:
    """A topic of three replicas that exists, with all of them in sync, for a while."""
    unique = f"{name}-{next(_topic_numbers)}"
    create_topics(cluster, [unique], partition_count, {})
    wait_in_sync(cluster, [unique])
    try:
        yield unique
    finally:
        with contextlib.suppress(KafkaError, OSError):
            ask(cluster, lambda admin: admin.delete_topics([unique]))


def topic_infos(cluster: Cluster) -> dict[str, TopicInfo]:
    """All topics as a broker knows them."""

    async def infos(admin: AdminOperations) -> dict[str, TopicInfo]:
        return {info.name: info for info in await admin.list_topics()}

    return look(cluster, infos)


def wait_in_sync(cluster: Cluster, names: list[str], timeout_s: float = _TIMEOUT_S) -> None:
    """Until every replica of these topics is in sync."""

    def in_sync() -> bool:
        infos = topic_infos(cluster)
        return all(
            name in infos and _has_leaders(infos[name], REPLICATION_FACTOR) for name in names
        )

    wait_until(in_sync, f"Replicas of {cluster.name} are not in sync", timeout_s)


def wait_led(cluster: Cluster, names: list[str], without: int) -> None:
    """Until every partition of these topics has a leader, and none of them is `without`."""

    def are_led() -> bool:
        infos = topic_infos(cluster)
        return all(
            name in infos
            and all(
                each.has_leader and each.leader_id != without for each in infos[name].partitions
            )
            for name in names
        )

    wait_until(are_led, f"Partitions of {cluster.name} have no leader", _TIMEOUT_S)


def leader_of(cluster: Cluster, name: str, partition: int = 0) -> int:
    return topic_infos(cluster)[name].partition(partition).leader_id


def controller_id(cluster: Cluster) -> int:
    """The broker that says to be the controller; Kafka names any broker here."""

    async def told(admin: AdminOperations) -> int:
        return (await admin.describe_cluster()).controller_id

    return look(cluster, told)


def wait_for_brokers(cluster: Cluster) -> None:
    """Until the cluster knows all brokers."""

    async def known(admin: AdminOperations) -> set[int]:
        return {broker.broker_id for broker in (await admin.describe_cluster()).brokers}

    def are_all_known() -> bool:
        return look(cluster, known) == set(BROKER_IDS)

    wait_until(are_all_known, f"Brokers of {cluster.name} are missing", _TIMEOUT_S)


def _has_leaders(info: TopicInfo, in_sync_count: int) -> bool:
    return all(each.has_leader and len(each.isr) == in_sync_count for each in info.partitions)
