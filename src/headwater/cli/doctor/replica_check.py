"""What `headwater doctor` looks for in replicas: who is missing or behind, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from headwater.base.counted import counted
from headwater.cli.cluster.partition_health import MIN_ISR, PartitionHealth, find_under_min_isr
from headwater.cli.doctor.findings import Finding, good, problem
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo

_NAMED_MAX: Final = 5


def check_replicas(topics: Collection[TopicInfo]) -> Iterator[Finding]:
    """Partitions without a leader, and such whose replicas are not all in sync."""
    health = PartitionHealth.of(topics)
    if health.offline:
        names = _some(list(map(str, health.offline)))
        yield problem("partitions", f"Without a leader, so out of use: {names}.")
    if health.under_replicated:
        names = _some(list(map(str, health.under_replicated)))
        yield problem("partitions", f"Under-replicated, so one failure nearer to a loss: {names}.")
    if health.is_whole:
        count = health.partition_count
        partitions = "The only partition has" if count == 1 else f"All {count:,} partitions have"
        yield good("partitions", f"{partitions} a leader and all replicas in sync.")


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED_MAX])
    return shown if len(names) <= _NAMED_MAX else f"{shown} and {len(names) - _NAMED_MAX} more"


def check_missing_brokers(
    topics: Collection[TopicInfo], brokers: Collection[int]
) -> Iterator[Finding]:
    """Brokers that should have replicas and are not there."""
    missing = Counter(
        broker_id
        for topic in topics
        for partition in topic.partitions
        for broker_id in partition.replicas
        if broker_id not in brokers
    )
    for broker_id, count in sorted(missing.items()):
        partitions = counted(count, "partition")
        yield problem(
            "brokers", f"Broker {broker_id}, which has a replica of {partitions}, is not there."
        )
    if not missing and len(brokers) > 1:
        yield good("brokers", f"All {len(brokers)} brokers that have replicas are there.")


async def check_min_isr(
    connection: ClusterConnection, topics: Collection[TopicInfo]
) -> list[Finding]:
    """Partitions that take no writes with acks=all, because too few replicas are in sync."""
    short = sorted(map(str, await find_under_min_isr(connection, topics)))
    if not short:
        return []
    return [
        problem(
            "partitions",
            f"With fewer replicas in sync than {MIN_ISR}, so that acks=all is refused: "
            f"{_some(short)}.",
        )
    ]
