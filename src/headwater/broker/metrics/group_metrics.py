"""The groups that this broker coordinates: how many there are, their members, and their lag.

Lag is what a group has still to read of a partition: the high watermark less the committed offset.
It is computed when somebody asks, of partitions that this broker leads: of others it does not know
the high watermark. Names and labels are those of the exporters that people run beside Kafka, with
the prefix `headwater_`; what a page costs is bounded by `metrics.partitions.max`, as that of logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import LINES_PER_PIECE, Sample, gauge, labels
from headwater.replication.partition.partitions import Partitions

if TYPE_CHECKING:
    from headwater.coordinator.group.classic.group import ClassicGroup
    from headwater.coordinator.group.consumer.group import ConsumerGroup
    from headwater.coordinator.group.group import Group
    from headwater.coordinator.group.shard import GroupShard

_BEANS: Final = "Kafka: kafka.server:type=group-coordinator-metrics,name="


def group_metrics(broker: BrokerContext, shown_max: int) -> Iterator[str]:
    """The families about groups; with more than `shown_max` of something only sums are shown."""
    counts: Counter[tuple[str, str]] = Counter()
    member_count = 0
    seen = 0
    for shard in broker.groups.shards():
        for group in shard.groups:
            counts[group.kind, group.state_name] += 1
            member_count += _member_count(group)
            seen += 1
            if seen % LINES_PER_PIECE == 0:
                # Nothing to show yet, but others may want a turn.
                yield ""
    yield from gauge(
        "headwater_groups",
        f"Groups that this broker coordinates. {_BEANS}group-count,protocol=... and "
        "name=consumer-group-count,state=...",
        [
            (labels({"kind": kind, "state": state}), count)
            for (kind, state), count in sorted(counts.items())
        ],
    )
    yield from gauge("headwater_group_members", "Members of those groups.", [("", member_count)])
    offset_count = sum(shard.offsets.store.offset_count for shard in broker.groups.shards())
    yield from gauge(
        "headwater_group_offsets",
        "Offsets that those groups have committed. "
        "Kafka: kafka.coordinator.group:type=GroupMetadataManager,name=NumOffsets",
        [("", offset_count)],
    )
    yield from _by_group(broker, seen, shown_max)
    if offset_count <= shown_max:
        yield from _by_partition(broker)


def _by_group(broker: BrokerContext, group_count: int, shown_max: int) -> Iterator[str]:
    lags: list[Sample] = []
    members: list[Sample] = []
    for shard in broker.groups.shards():
        for group in shard.groups:
            names = labels({"consumergroup": group.group_id})
            lag = sum(lag for _, lag in _lags(shard, group, broker.partitions))
            lags.append((names, lag))
            members.append((names, _member_count(group)))
            if len(lags) % LINES_PER_PIECE == 0:
                yield ""
    if group_count > shown_max:
        lags = [("", sum(lag for _, lag in lags))]
        members = []
    yield from gauge(
        "headwater_consumergroup_lag_sum",
        "Records that a group has still to read, in all partitions led by this broker.",
        lags,
    )
    if members:
        yield from gauge("headwater_consumergroup_members", "Members of a group.", members)


def _by_partition(broker: BrokerContext) -> Iterator[str]:
    def offsets() -> Iterator[Sample]:
        for shard in broker.groups.shards():
            for group in shard.groups:
                committed = list(shard.offsets.store.committed(group.group_id).items())
                for key, place in committed:
                    yield _labels(group, key), place.offset

    def lags() -> Iterator[Sample]:
        for shard in broker.groups.shards():
            for group in shard.groups:
                for key, lag in _lags(shard, group, broker.partitions):
                    yield _labels(group, key), lag

    yield from gauge(
        "headwater_consumergroup_current_offset",
        "The offset that a group has committed in a partition.",
        offsets(),
    )
    yield from gauge(
        "headwater_consumergroup_lag",
        "Records that a group has still to read in a partition: the high watermark less the "
        "committed offset.",
        lags(),
    )


def _lags(
    shard: GroupShard, group: Group, partitions: Partitions
) -> list[tuple[TopicPartition, int]]:
    """The lag of a group in the partitions led here; a list, since groups go on meanwhile."""
    lags = []
    for key, committed in shard.offsets.store.committed(group.group_id).items():
        partition = partitions.find(*key)
        if partition is not None and partition.is_leader:
            lag = max(0, partition.log.visible_high_watermark - committed.offset)
            lags.append((key, lag))
    return lags


def _labels(group: Group, key: TopicPartition) -> str:
    return labels({"consumergroup": group.group_id, "topic": key.topic, "partition": key.partition})


def _member_count(group: Group) -> int:
    # A group is of one of the two protocols, whatever else they have in common.
    return len(cast("ClassicGroup | ConsumerGroup", group).members)
