"""What `headwater doctor` looks for in replicas: who is missing or behind, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.cli.doctor.findings import Finding, good, problem
from headwater.client.admin import AdminOperations, ConfigResource, ResourceType
from headwater.client.connection.cluster_metadata import TopicInfo

_NAMED_MAX: Final = 5
_MIN_ISR: Final = "min.insync.replicas"


def check_replicas(topics: Collection[TopicInfo]) -> Iterator[Finding]:
    """Partitions without a leader, and such whose replicas are not all in sync."""
    leaderless, behind, count = [], [], 0
    for topic in topics:
        for partition in topic.partitions:
            count += 1
            name = f"{topic.name}-{partition.partition}"
            if not partition.has_leader:
                leaderless.append(name)
            elif len(partition.isr) < len(partition.replicas):
                behind.append(name)
    if leaderless:
        yield problem("partitions", f"Without a leader, so out of use: {_some(leaderless)}.")
    if behind:
        yield problem(
            "partitions", f"Under-replicated, so one failure nearer to a loss: {_some(behind)}."
        )
    if not leaderless and not behind:
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


async def check_min_isr(admin: AdminOperations, topics: Collection[TopicInfo]) -> list[Finding]:
    """Partitions that take no writes with acks=all, because too few replicas are in sync."""
    behind = {
        topic.name: topic
        for topic in topics
        if any(len(each.isr) < len(each.replicas) for each in topic.partitions)
    }
    if not behind:
        return []
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in behind}
    outcomes = await admin.describe_configs(list(resources.values()), names=[_MIN_ISR])
    short = []
    for name, resource in sorted(resources.items()):
        entries = outcomes[resource]
        if isinstance(entries, KafkaError):
            continue
        wanted = next((int(each.value or 1) for each in entries if each.name == _MIN_ISR), 1)
        short += [
            f"{name}-{each.partition}"
            for each in behind[name].partitions
            # No more can be wanted than there are.
            if each.has_leader and len(each.isr) < min(wanted, len(each.replicas))
        ]
    if not short:
        return []
    return [
        problem(
            "partitions",
            f"With fewer replicas in sync than {_MIN_ISR}, so that acks=all is refused: "
            f"{_some(short)}.",
        )
    ]
