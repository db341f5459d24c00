"""Forgetting committed offsets: on request, with their topic, or with their group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import TopicImage
from headwater.coordinator.group.group import Group, GroupKind
from headwater.coordinator.group.offsets.record import offset_tombstone
from headwater.coordinator.group.offsets.store import OffsetStore
from headwater.coordinator.outcome import Change, Outcome
from headwater.coordinator.stored_record import StoredRecord

#: What is written at a time, well below what a topic takes in one batch.
BATCH_BYTES_MAX: Final = 256 << 10

_RECORD_OVERHEAD_BYTES: Final = 16
_CONSUMERS: Final = "consumer"


def delete_offsets(
    store: OffsetStore, group: Group, partitions: Sequence[TopicPartition]
) -> Change[list[ErrorCode]]:
    """Forget offsets that no member uses, with an answer for each, in order."""
    _check_subscriptions_are_known(group)
    answers: list[ErrorCode] = []
    records: list[StoredRecord] = []
    known = store.partitions(group.group_id)
    for key in partitions:
        if group.is_subscribed_to(key.topic):
            answers.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        answers.append(ErrorCode.NONE)
        if key in known:
            known.remove(key)
            records.append(offset_tombstone(group.group_id, *key))
    return Change(answers, records)


def offsets_of_topics(store: OffsetStore, topics: Iterable[TopicImage]) -> list[Outcome]:
    """Forget what groups committed for topics that are gone, pending offsets too."""
    group_ids = sorted(store.group_ids())
    records = [
        offset_tombstone(group_id, *key)
        for topic in topics
        for group_id in group_ids
        for key in store.partitions_of_topic(group_id, topic.name, topic.topic_id)
    ]
    return [Outcome(batch) for batch in batches(records)]


def group_tombstones(store: OffsetStore, group_id: str) -> list[StoredRecord]:
    """The records that forget all offsets of a group, pending ones too."""
    return [offset_tombstone(group_id, *key) for key in sorted(store.partitions(group_id))]


def batches(records: Sequence[StoredRecord]) -> list[list[StoredRecord]]:
    """The records in order, so many at a time as can be written together."""
    parts: list[list[StoredRecord]] = []
    size_bytes = 0
    for record in records:
        record_bytes = len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
        if not parts or size_bytes + record_bytes > BATCH_BYTES_MAX:
            parts.append([])
            size_bytes = 0
        parts[-1].append(record)
        size_bytes += record_bytes
    return parts


def _check_subscriptions_are_known(group: Group) -> None:
    """Raise NON_EMPTY_GROUP if the members' subscriptions are in a language of their own."""
    is_opaque = group.kind is GroupKind.CLASSIC and group.protocol_type != _CONSUMERS
    if is_opaque and not group.is_empty:
        raise KafkaError(
            ErrorCode.NON_EMPTY_GROUP, f"The group {group.group_id} has members that may use them."
        )
