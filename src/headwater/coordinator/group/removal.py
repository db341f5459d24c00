"""Deleting groups, on request or when nothing is left of them, and expiring their offsets.

An offset that no member uses is forgotten after `offsets.retention.minutes`, or when the client
that committed it said so. A group without members goes with its last offset. Both are looked for
every `offsets.retention.check.interval.ms`.

What goes is written piece by piece, since a batch has a limit: a search that found much, or a large
group that is to be deleted, goes on after a part was written.
"""

from __future__ import annotations

from typing import Final

from headwater.base.ids import TopicPartition
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.group import Group
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.offsets.delete import BATCH_BYTES_MAX, batches
from headwater.coordinator.group.offsets.protocol import OffsetProtocol
from headwater.coordinator.group.offsets.record import offset_tombstone
from headwater.coordinator.group.offsets.store import CommittedOffset
from headwater.coordinator.outcome import Change, Outcome
from headwater.coordinator.stored_record import StoredRecord

EXPIRY_TIMER: Final = "expiry of offsets"

_MINUTE_MS: Final = 60_000
#: Before the rest of a long search is written, which may also have failed.
_PAUSE_MS: Final = 1_000


class GroupRemoval:
    def __init__(
        self, environment: GroupEnvironment, groups: Groups, offsets: OffsetProtocol
    ) -> None:
        self._environment = environment
        self._groups = groups
        self._offsets = offsets

    def delete(self, group_id: str) -> Change[bool]:
        """Delete a group and its offsets; False means that a part is done and to ask again."""
        group = self._groups.get(group_id)
        group.check_deletion()
        parts = batches([*self._offsets.remove_group(group_id), *group.tombstones()])
        return Change(len(parts) <= 1, parts[0] if parts else [])

    def on_loaded(self, now_ms: int) -> None:
        self._look_later()

    def _look_later(self) -> None:
        interval_ms = self._environment.settings.integer("offsets.retention.check.interval.ms")
        self._environment.timers.schedule(EXPIRY_TIMER, interval_ms, self.expire)

    def expire(self, now_ms: int) -> Outcome:
        """Forget what is old; a part of it if that is too much for a batch."""
        self._look_later()
        records: list[StoredRecord] = []
        size_bytes = 0
        for group in self._groups:
            of_group = self._expired(group, now_ms)
            records += of_group
            size_bytes += sum(len(record.key) for record in of_group)
            if size_bytes > BATCH_BYTES_MAX:
                break
        parts = batches(records)
        if size_bytes > BATCH_BYTES_MAX or len(parts) > 1:
            self._environment.timers.schedule(EXPIRY_TIMER, _PAUSE_MS, self.expire)
        return Outcome(parts[0] if parts else [])

    def _expired(self, group: Group, now_ms: int) -> list[StoredRecord]:
        """The tombstones of a group's old offsets, and of the group if nothing else is left."""
        store = self._offsets.store
        retention_ms = self._environment.settings.integer("offsets.retention.minutes") * _MINUTE_MS
        records: list[StoredRecord] = []
        committed = store.committed(group.group_id)
        for key, offset in committed.items():
            is_old = _is_old(group, key, offset, now_ms, retention_ms)
            if is_old and not store.is_pending(group.group_id, key):
                records.append(offset_tombstone(group.group_id, *key))
        is_nothing_left = len(records) == len(committed) and not store.has_pending(group.group_id)
        if is_nothing_left and group.is_empty:
            records += group.tombstones()
        return records


def _is_old(
    group: Group, key: TopicPartition, offset: CommittedOffset, now_ms: int, retention_ms: int
) -> bool:
    unused_since_ms = group.offsets_unused_since_ms(key.topic, offset.commit_ms)
    if unused_since_ms is None:
        return False
    if offset.expire_ms is not None:
        return now_ms >= offset.expire_ms
    return now_ms - unused_since_ms >= retention_ms
