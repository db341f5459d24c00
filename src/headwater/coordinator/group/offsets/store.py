"""The offsets that groups have committed, and those whose transactions are still open.

A transactional commit is pending until its producer's transaction ends; then it counts, unless a
later record has overtaken it: of two commits the one that stands later in the topic wins, whichever
became valid first. That way it makes no difference what compaction has left of them. A tombstone
forgets pending offsets too.

Only replayed records change the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.coordinator.group.offsets.record import NO_EXPIRY, OffsetCommitValue
from headwater.wire.schema import ZERO_UUID


class CommittedOffset(NamedTuple):
    """What a group has committed for a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    #: When it expires, if the client set that itself.
    expire_ms: int | None
    #: Zero if the client named the topic, not its id.
    topic_id: uuid.UUID
    #: Where the record stands in the topic.
    record_offset: int

    @classmethod
    def from_record(cls, value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
        expire_ms = value.expire_timestamp
        return cls(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            None if expire_ms == NO_EXPIRY else expire_ms,
            value.topic_id,
            record_offset,
        )

    def is_of(self, topic_id: uuid.UUID) -> bool:
        """Whether it was committed for this topic, or nobody can tell."""
        return self.topic_id in (topic_id, ZERO_UUID) or topic_id == ZERO_UUID


_NOTHING: Final[Mapping[TopicPartition, CommittedOffset]] = MappingProxyType({})


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        #: By producer id, then by group and partition.
        self._pending: dict[int, dict[tuple[str, TopicPartition], CommittedOffset]] = {}
        #: The producers with a pending offset, by group and partition; no set is empty.
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}

    # -- looking ---------------------------------------------------------------------------------

    def group_ids(self) -> Iterator[str]:
        """The groups that have offsets, pending ones too."""
        return iter(self._committed.keys() | self._open.keys())

    def committed(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._committed.get(group_id, _NOTHING)

    def is_pending(self, group_id: str, topic_partition: TopicPartition) -> bool:
        """Whether an open transaction is going to change the offset."""
        return topic_partition in self._open.get(group_id, ())

    def has_pending(self, group_id: str) -> bool:
        return group_id in self._open

    def partitions(self, group_id: str) -> set[TopicPartition]:
        """All that a tombstone is needed for to forget the group's offsets."""
        return {*self.committed(group_id), *self._open.get(group_id, ())}

    def partitions_of_topic(
        self, group_id: str, name: str, topic_id: uuid.UUID
    ) -> list[TopicPartition]:
        """Those partitions of a topic that the group has offsets for, pending ones too."""
        found = {
            key
            for key, offset in self.committed(group_id).items()
            if key.topic == name and offset.is_of(topic_id)
        }
        for key, producer_ids in self._open.get(group_id, {}).items():
            if key.topic == name and any(
                self._pending[producer_id][group_id, key].is_of(topic_id)
                for producer_id in producer_ids
            ):
                found.add(key)
        return sorted(found)

    @property
    def offset_count(self) -> int:
        """How many offsets are committed, for metrics."""
        return sum(map(len, self._committed.values()))

    def stored_state(self) -> object:
        pending = {
            producer_id: dict(offsets) for producer_id, offsets in self._pending.items() if offsets
        }
        return {group: dict(offsets) for group, offsets in self._committed.items()}, pending

    # -- replaying -------------------------------------------------------------------------------

    def put(self, group_id: str, topic_partition: TopicPartition, offset: CommittedOffset) -> None:
        """A plain commit: it counts at once."""
        self._committed.setdefault(group_id, {})[topic_partition] = offset

    def put_pending(
        self,
        producer_id: int,
        group_id: str,
        topic_partition: TopicPartition,
        offset: CommittedOffset,
    ) -> None:
        """A commit that is part of a producer's transaction."""
        self._pending.setdefault(producer_id, {})[group_id, topic_partition] = offset
        open_partitions = self._open.setdefault(group_id, {})
        open_partitions.setdefault(topic_partition, set()).add(producer_id)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """What is pending of a producer counts from now on, or never."""
        for (group_id, topic_partition), offset in self._pending.pop(producer_id, {}).items():
            self._close(producer_id, group_id, topic_partition)
            if is_committed:
                former = self.committed(group_id).get(topic_partition)
                if former is None or former.record_offset < offset.record_offset:
                    self.put(group_id, topic_partition, offset)

    def remove(self, group_id: str, topic_partition: TopicPartition) -> None:
        """A tombstone: nothing is known of the partition any more."""
        committed = self._committed.get(group_id, {})
        if committed.pop(topic_partition, None) is not None and not committed:
            del self._committed[group_id]
        for producer_id in list(self._open.get(group_id, {}).get(topic_partition, ())):
            del self._pending[producer_id][group_id, topic_partition]
            self._close(producer_id, group_id, topic_partition)

    def _close(self, producer_id: int, group_id: str, topic_partition: TopicPartition) -> None:
        open_partitions = self._open[group_id]
        producer_ids = open_partitions[topic_partition]
        producer_ids.remove(producer_id)
        if not producer_ids:
            del open_partitions[topic_partition]
            if not open_partitions:
                del self._open[group_id]
