"""Committed offsets of the groups of one shard: commits, fetches and deletions, step by step.

The steps are functions of their own modules; here they meet the store and the groups. An offset
needs no group of members: a commit from outside makes a group that has nothing but offsets, and
exists as long as these do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.offsets.commit import (
    Committer,
    NewOffset,
    check_commit,
    check_transactional_commit,
    commit_change,
)
from headwater.coordinator.group.offsets.delete import (
    delete_offsets,
    group_tombstones,
    offsets_of_topics,
)
from headwater.coordinator.group.offsets.fetch import (
    FetchedOffset,
    WantedOffset,
    fetch_all,
    fetch_named,
)
from headwater.coordinator.group.offsets.record import (
    OFFSET_KEY_VERSIONS,
    read_offset_key,
    read_offset_value,
)
from headwater.coordinator.group.offsets.store import CommittedOffset, OffsetStore
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord

_LONG_MAX: Final = 2**63 - 1
#: Of so many groups and partitions commits from outside are counted.
_OUTSIDE_MAX: Final = 10_000
#: The retention of a commit that leaves it to the broker.
BROKERS_RETENTION: Final = -1


class OffsetProtocol:
    def __init__(self, environment: GroupEnvironment, groups: Groups) -> None:
        self._environment = environment
        self._groups = groups
        self.store = OffsetStore()
        #: How many commits came from outside of a group, such as resets; soft, for the audit.
        self._outside: dict[tuple[str, TopicPartition], int] = {}

    # -- requests --------------------------------------------------------------------------------

    def commit(
        self,
        group_id: str,
        committer: Committer,
        offsets: Sequence[NewOffset],
        now_ms: int,
        *,
        api_version: int,
        retention_ms: int = BROKERS_RETENTION,
    ) -> Change[list[ErrorCode]]:
        """Store offsets; answers for each of them, in order."""
        check_commit(self._groups, group_id, committer, api_version)
        if committer.generation < 0:
            self._note_outside(group_id, offsets)
        return commit_change(
            group_id,
            offsets,
            now_ms,
            metadata_length_max=self._metadata_length_max(),
            expire_ms=_expire_ms(retention_ms, now_ms),
        )

    def commit_in_transaction(
        self,
        group_id: str,
        committer: Committer,
        producer: ProducerIdentity,
        offsets: Sequence[NewOffset],
        now_ms: int,
        *,
        api_version: int,
    ) -> Change[list[ErrorCode]]:
        """Store offsets that count when the producer's transaction is committed."""
        check_transactional_commit(self._groups, group_id, committer, api_version)
        change = commit_change(
            group_id, offsets, now_ms, metadata_length_max=self._metadata_length_max()
        )
        change.producer = producer
        return change

    def fetch(
        self,
        group_id: str,
        wanted: Sequence[WantedOffset] | None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> list[FetchedOffset]:
        """The offsets of the wanted partitions, or of all; there are none without a group."""
        group = self._groups.find(group_id)
        if group is not None:
            group.check_offset_fetch(member_id, member_epoch)
        if wanted is None:
            return fetch_all(self.store, group_id, require_stable=require_stable)
        return fetch_named(self.store, group_id, wanted, require_stable=require_stable)

    def delete(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Change[list[ErrorCode]]:
        """Forget offsets; answers for each of them, in order."""
        return delete_offsets(self.store, self._groups.get(group_id), partitions)

    def remove_group(self, group_id: str) -> list[StoredRecord]:
        """The records that forget all offsets of a group, pending ones too."""
        return group_tombstones(self.store, group_id)

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        """Offsets are forgotten with their topics."""
        return offsets_of_topics(self.store, change.deleted_topics)

    def _note_outside(self, group_id: str, offsets: Sequence[NewOffset]) -> None:
        for offset in offsets:
            key = (group_id, offset.topic_partition)
            if key in self._outside or len(self._outside) < _OUTSIDE_MAX:
                self._outside[key] = self._outside.get(key, 0) + 1

    def take_outside_commits(self) -> dict[tuple[str, TopicPartition], int]:
        """How many commits came from nobody who is a member, since this was last asked."""
        taken, self._outside = self._outside, {}
        return taken

    def _metadata_length_max(self) -> int:
        return self._environment.settings.integer("offset.metadata.max.bytes")

    # -- records ---------------------------------------------------------------------------------

    def replays(
        self,
    ) -> Mapping[int, Callable[[bytes, bytes | None, int, ProducerIdentity | None, int], None]]:
        return dict.fromkeys(OFFSET_KEY_VERSIONS, self._replay)

    def _replay(
        self,
        key: bytes,
        value: bytes | None,
        record_offset: int,
        producer: ProducerIdentity | None,
        now_ms: int,
    ) -> None:
        named = read_offset_key(key)
        topic_partition = TopicPartition(named.topic, named.partition)
        if value is None:
            self.store.remove(named.group, topic_partition)
            return
        committed = CommittedOffset.from_record(read_offset_value(value), record_offset)
        if self._groups.find(named.group) is None:
            self._groups.put(ClassicGroup(named.group))
        if producer is None:
            self.store.put(named.group, topic_partition, committed)
        else:
            self.store.put_pending(producer.producer_id, named.group, topic_partition, committed)

    def replay_transaction_end(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        self.store.end_transaction(producer.producer_id, is_committed=is_committed)

    def stored_state(self) -> object:
        return self.store.stored_state()


def _expire_ms(retention_ms: int, now_ms: int) -> int | None:
    """When the client wants its offset forgotten, if it says so; the end of time is the latest."""
    return None if retention_ms == BROKERS_RETENTION else min(now_ms + retention_ms, _LONG_MAX)
