"""The demo's topics, as the client sees them: made, read to their ends, and lagged behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.client.admin import Admin, NewTopic
from headwater.client.admin.offsets import OffsetTime
from headwater.client.admin.outcomes import require_all
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.record import ConsumerRecord

#: One for each of the two cores that the demo is made for.
PARTITION_COUNT: Final = 2


def create_topics(address: str, names: Collection[str]) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(name, PARTITION_COUNT, 1) for name in names])


def read_topic(address: str, topic: str) -> list[ConsumerRecord]:
    """All committed records that the topic holds now; in their order within a partition."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITION_COUNT)]
    records: list[ConsumerRecord] = []
    with Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            records += consumer.poll(timeout_s=1.0)
    return records


def end_offsets(address: str, topics: Collection[str]) -> dict[TopicPartition, int]:
    partitions = [TopicPartition(name, n) for name in topics for n in range(PARTITION_COUNT)]
    with Admin(bootstrap_servers=address) as admin:
        listed = admin.list_offsets(dict.fromkeys(partitions, OffsetTime.LATEST))
        return {partition: found.offset for partition, found in require_all(listed).items()}


def lag_by_group(address: str, topics_by_group: Mapping[str, Collection[str]]) -> dict[str, int]:
    """How many records each group has not read yet, as `headwater groups describe` tells it."""
    lags: dict[str, int] = {}
    with Admin(bootstrap_servers=address) as admin:
        committed = require_all(admin.list_group_offsets(list(topics_by_group)))
    for group, topics in topics_by_group.items():
        lags[group] = sum(
            end - (committed[group][partition].offset if partition in committed[group] else 0)
            for partition, end in end_offsets(address, topics).items()
        )
    return lags
