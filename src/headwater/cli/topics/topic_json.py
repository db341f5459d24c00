"""Topics as `headwater topics --json` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.ids import TopicPartition, topic_id_to_text
from headwater.cli.cluster.partition_health import Moves
from headwater.cli.topics.description import overrides_of, replication_factor, shown_partitions
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.client.admin import ConfigEntry
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo


def topic_json(topic: TopicInfo, moves: Moves) -> dict[str, object]:
    """What a topic is, without its settings and partitions."""
    return {
        "topic": topic.name,
        "topic_id": topic_id_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": replication_factor(topic, moves),
    }


def described_json(
    topic: TopicInfo,
    configs: Sequence[ConfigEntry],
    partition_filter: PartitionFilter,
    live_brokers: frozenset[int],
    moves: Moves,
) -> dict[str, object] | None:
    """The topic with its settings, and the partitions that the filter lets through, if any."""
    overrides = {entry.name: entry.value for entry in overrides_of(configs)}
    partitions = shown_partitions(topic, configs, partition_filter, live_brokers, moves)
    if partition_filter is PartitionFilter.WITH_OVERRIDES:
        is_shown = bool(overrides)
    else:
        is_shown = partition_filter is PartitionFilter.ALL or bool(partitions)
    if not is_shown:
        return None
    return {
        **topic_json(topic, moves),
        "configs": overrides,
        "partitions": [_partition_json(topic.name, partition, moves) for partition in partitions],
    }


def _partition_json(topic: str, partition: PartitionInfo, moves: Moves) -> dict[str, object]:
    move = moves.get(TopicPartition(topic, partition.partition))
    return {
        "partition": partition.partition,
        "leader": partition.leader_id if partition.has_leader else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding": [] if move is None else list(move.adding_replicas),
        "removing": [] if move is None else list(move.removing_replicas),
        "elr": list(partition.eligible_leaders),
        "last_known_elr": list(partition.last_known_eligible_leaders),
    }
