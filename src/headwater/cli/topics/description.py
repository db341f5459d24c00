"""Topics as `headwater topics --describe` prints them, in the form of Kafka's own tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headwater.base.ids import TopicPartition, topic_id_to_text
from headwater.cli.cluster.partition_health import Moves, is_under_replicated, without_added
from headwater.cli.output.colour import Tone, heading, painted
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.client.admin import ConfigEntry, ConfigSource
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo

MIN_ISR = "min.insync.replicas"


def describe_topic(
    topic: TopicInfo,
    configs: Sequence[ConfigEntry],
    partition_filter: PartitionFilter,
    live_brokers: frozenset[int],
    moves: Moves,
) -> Iterator[str]:
    """The topic's line and one for each partition, as far as the filter lets them through."""
    overrides = overrides_of(configs)
    if partition_filter is PartitionFilter.WITH_OVERRIDES:
        if overrides:
            yield _topic_line(topic, overrides, moves)
        return
    if partition_filter is PartitionFilter.ALL:
        yield _topic_line(topic, overrides, moves)
    for partition in shown_partitions(topic, configs, partition_filter, live_brokers, moves):
        yield _partition_line(topic.name, partition, moves)


def overrides_of(configs: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    """Settings that are not at their default."""
    return [entry for entry in configs if entry.source is not ConfigSource.DEFAULT_CONFIG]


def shown_partitions(
    topic: TopicInfo,
    configs: Sequence[ConfigEntry],
    partition_filter: PartitionFilter,
    live_brokers: frozenset[int],
    moves: Moves,
) -> list[PartitionInfo]:
    """The partitions that the filter lets through; a replica that is being added is not missed."""
    min_isr = next((int(entry.value or 1) for entry in configs if entry.name == MIN_ISR), 1)
    (settled,) = without_added([topic], moves)
    return [
        partition
        for partition, judged in zip(topic.partitions, settled.partitions, strict=True)
        if _is_shown(judged, partition_filter, min_isr, live_brokers)
    ]


def replication_factor(topic: TopicInfo, moves: Moves) -> int:
    """What it was before partitions began to move, as Kafka's tool has it."""
    (settled,) = without_added([topic], moves)
    return max((len(partition.replicas) for partition in settled.partitions), default=0)


def _is_shown(
    partition: PartitionInfo, wanted: PartitionFilter, min_isr: int, live_brokers: frozenset[int]
) -> bool:
    match wanted:
        case PartitionFilter.UNDER_REPLICATED:
            return is_under_replicated(partition)
        case PartitionFilter.UNAVAILABLE:
            return not partition.has_leader or partition.leader_id not in live_brokers
        case PartitionFilter.UNDER_MIN_ISR:
            return not partition.has_leader or len(partition.isr) < min_isr
        case PartitionFilter.AT_MIN_ISR:
            return len(partition.isr) == min_isr
        case _:
            return True


def _topic_line(topic: TopicInfo, overrides: Iterable[ConfigEntry], moves: Moves) -> str:
    fields = (
        f"Topic: {topic.name}",
        f"TopicId: {topic_id_to_text(topic.topic_id)}",
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {replication_factor(topic, moves)}",
        "Configs: " + ",".join(f"{entry.name}={entry.value}" for entry in overrides),
    )
    return heading("\t".join(fields))


def _partition_line(topic: str, partition: PartitionInfo, moves: Moves) -> str:
    leader = f"Leader: {partition.leader_id if partition.has_leader else 'none'}"
    in_sync = f"Isr: {_brokers(partition.isr)}"
    fields = [
        f"\tTopic: {topic}",
        f"Partition: {partition.partition}",
        painted(leader, None if partition.has_leader else Tone.BAD),
        f"Replicas: {_brokers(partition.replicas)}",
        painted(in_sync, Tone.WARNING if is_under_replicated(partition) else None),
    ]
    move = moves.get(TopicPartition(topic, partition.partition))
    if move is not None:
        fields.append(f"Adding Replicas: {_brokers(move.adding_replicas)}")
        fields.append(f"Removing Replicas: {_brokers(move.removing_replicas)}")
    # Only a cluster that keeps these has any, and only in trouble.
    if partition.eligible_leaders:
        fields.append(f"Elr: {_brokers(partition.eligible_leaders)}")
    if partition.last_known_eligible_leaders:
        fields.append(f"LastKnownElr: {_brokers(partition.last_known_eligible_leaders)}")
    return "\t".join(fields)


def _brokers(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))
