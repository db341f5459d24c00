"""Whether stopping a broker now would hurt: what only it has, and what is short of replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cli.cluster.partition_health import (
    find_topics,
    find_under_min_isr,
    is_under_replicated,
    without_added,
)
from headwater.client.admin import BrokerOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo

_NAMED_MAX: Final = 3


class RestartCheck(NamedTuple):
    """What would become of partitions while a broker is away; all empty if nothing would."""

    broker_id: int
    #: No other replica is in sync: out of use.
    alone: list[TopicPartition]
    #: Replicas that are not in sync already.
    short: list[TopicPartition]
    #: Too few would be left for acks=all.
    refusing: list[TopicPartition]

    @property
    def hurts(self) -> bool:
        return bool(self.alone or self.short or self.refusing)

    def sentences(self) -> Iterator[str]:
        broker_id = self.broker_id
        if self.alone:
            yield (
                f"Stopping broker {broker_id} now would take {_partitions(self.alone)} away: no "
                f"other replica is in sync ({listed(self.alone, _NAMED_MAX)})."
            )
        if self.short:
            verb = "is" if len(self.short) == 1 else "are"
            yield (
                f"{_partitions(self.short)} of this broker {verb} short of replicas already "
                f"({listed(self.short, _NAMED_MAX)}): wait until they are in sync."
            )
        if self.refusing:
            yield (
                f"While broker {broker_id} is away, {_partitions(self.refusing)} would take no "
                f"writes with acks=all ({listed(self.refusing, _NAMED_MAX)}): "
                "min.insync.replicas leaves no room for it."
            )
        if not self.hurts:
            yield f"Broker {broker_id} can be stopped: all of its partitions are in sync elsewhere."


async def check_restart(connection: ClusterConnection, broker_id: int) -> RestartCheck:
    """Look at every partition that the broker is in sync with."""
    cluster = await BrokerOperations(connection).describe_cluster()
    if broker_id not in {broker.broker_id for broker in cluster.brokers}:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"There is no live broker {broker_id}.")
    topics = without_added(*await find_topics(connection))
    without = [_without(topic, broker_id) for topic in topics]
    check = RestartCheck(broker_id, [], [], [])
    for topic in topics:
        for partition in topic.partitions:
            if broker_id not in partition.isr:
                continue
            key = TopicPartition(topic.name, partition.partition)
            if len(partition.isr) == 1:
                check.alone.append(key)
            elif is_under_replicated(partition):
                check.short.append(key)
    told_already = {*check.alone, *check.short}
    check.refusing.extend(
        key for key in await find_under_min_isr(connection, without) if key not in told_already
    )
    return check


def _without(topic: TopicInfo, broker_id: int) -> TopicInfo:
    """What the broker is in sync with, as if it had gone."""
    return topic._replace(
        partitions=tuple(
            each._replace(isr=tuple(other for other in each.isr if other != broker_id))
            for each in topic.partitions
            if broker_id in each.isr
        )
    )


def _partitions(names: list[TopicPartition]) -> str:
    return counted(len(names), "partition")
