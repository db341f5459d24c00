"""Topics as `headwater topics --json` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.ids import topic_id_to_text
from headwater.cli.topics.description import overrides_of, replication_factor, shown_partitions
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.client.admin import ConfigEntry
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo


def topic_json(topic: TopicInfo) -> dict[str, object]:
    """What a topic is, without its settings and partitions."""
    return {
        "topic": topic.name,
        "topic_id": topic_id_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": replication_factor(topic),
    }


def described_json(
    topic: TopicInfo,
    configs: Sequence[ConfigEntry],
    partition_filter: PartitionFilter,
    live_brokers: frozenset[int],
) -> dict[str, object] | None:
    """The topic with its settings, and the partitions that the filter lets through, if any."""
    overrides = {entry.name: entry.value for entry in overrides_of(configs)}
    partitions = shown_partitions(topic, configs, partition_filter, live_brokers)
    if partition_filter is PartitionFilter.WITH_OVERRIDES:
        is_shown = bool(overrides)
    else:
        is_shown = partition_filter is PartitionFilter.ALL or bool(partitions)
    if not is_shown:
        return None
    return {
        **topic_json(topic),
        "configs": overrides,
        "partitions": [_partition_json(partition) for partition in partitions],
    }


def _partition_json(partition: PartitionInfo) -> dict[str, object]:
    return {
        "partition": partition.partition,
        "leader": partition.leader_id if partition.has_leader else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.eligible_leaders),
        "last_known_elr": list(partition.last_known_eligible_leaders),
    }
