"""Takes the records of consumer groups into the groups of a shard, live and when loading.

A value brings its group and member into being if they are not there: compaction keeps only the last
record of a key, so anything may come first. A tombstone of something unknown does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import ConsumerMember
from headwater.coordinator.group.consumer.stored.records import (
    read_current,
    read_member,
    read_regex,
    read_target,
)
from headwater.coordinator.group.consumer.stored.schemas import (
    CURRENT_KEY,
    GROUP_KEY,
    MEMBER_KEY,
    PARTITION_METADATA_KEY,
    REGEX_KEY,
    TARGET_KEY,
    TARGET_MEMBER_KEY,
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerRegexKey,
    ConsumerTargetValue,
)
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.stored_record import decode_versioned

#: Takes key, value, offset, the producer of an open transaction if any, and the record's time.
Replay = Callable[[bytes, bytes | None, int, ProducerIdentity | None, int], None]
_Take = Callable[[bytes, bytes | None], None]


class ConsumerReplay:
    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def replays(self) -> Mapping[int, Replay]:
        takes: dict[int, _Take] = {
            GROUP_KEY: self._take_group,
            PARTITION_METADATA_KEY: self._take_partition_metadata,
            MEMBER_KEY: self._take_member,
            TARGET_KEY: self._take_target_epoch,
            TARGET_MEMBER_KEY: self._take_target,
            CURRENT_KEY: self._take_current,
            REGEX_KEY: self._take_regex,
        }
        return {kind: partial(_replay, take) for kind, take in takes.items()}

    def _take_group(self, key: bytes, value: bytes | None) -> None:
        group_id = decode_versioned(ConsumerGroupKey, key).group_id
        if value is None:
            if self._groups.find_of(ConsumerGroup, group_id) is not None:
                self._groups.remove(group_id)
            return
        stored = decode_versioned(ConsumerGroupValue, value)
        group = self._made(group_id)
        group.epoch, group.metadata_hash = stored.epoch, stored.metadata_hash

    def _take_partition_metadata(self, key: bytes, value: bytes | None) -> None:
        group_id = decode_versioned(ConsumerGroupKey, key).group_id
        if value is not None:
            self._made(group_id).has_partition_metadata = True
        elif (group := self._groups.find_of(ConsumerGroup, group_id)) is not None:
            group.has_partition_metadata = False

    def _take_target_epoch(self, key: bytes, value: bytes | None) -> None:
        group_id = decode_versioned(ConsumerGroupKey, key).group_id
        if value is not None:
            stored = decode_versioned(ConsumerTargetValue, value)
            self._made(group_id).target_epoch = stored.assignment_epoch
        elif (group := self._groups.find_of(ConsumerGroup, group_id)) is not None:
            group.target_epoch = 0

    def _take_member(self, key: bytes, value: bytes | None) -> None:
        group_id, member_id = _read_member_key(key)
        if value is not None:
            group = self._made(group_id)
            group.put_member(read_member(value, _member(group, member_id)))
        elif (known := self._groups.find_of(ConsumerGroup, group_id)) is not None:
            known.remove_member(member_id)

    def _take_target(self, key: bytes, value: bytes | None) -> None:
        group_id, member_id = _read_member_key(key)
        if value is not None:
            self._made(group_id).targets[member_id] = read_target(value)
        elif (group := self._groups.find_of(ConsumerGroup, group_id)) is not None:
            group.targets.pop(member_id, None)

    def _take_current(self, key: bytes, value: bytes | None) -> None:
        group_id, member_id = _read_member_key(key)
        if value is not None:
            group = self._made(group_id)
            group.put_member(read_current(value, _member(group, member_id)))
        else:
            known = self._groups.find_of(ConsumerGroup, group_id)
            if known is not None and member_id in known.members:
                known.put_member(known.members[member_id].without_assignment())

    def _take_regex(self, key: bytes, value: bytes | None) -> None:
        stored = decode_versioned(ConsumerRegexKey, key)
        if value is not None:
            group = self._made(stored.group_id)
            group.regexes[stored.regular_expression] = read_regex(value)
        elif (known := self._groups.find_of(ConsumerGroup, stored.group_id)) is not None:
            known.regexes.pop(stored.regular_expression, None)

    def _made(self, group_id: str) -> ConsumerGroup:
        """The group; it takes the place of a classic one, of which only offsets can be left."""
        group = self._groups.find_of(ConsumerGroup, group_id)
        if group is None:
            group = ConsumerGroup(group_id)
            self._groups.put(group)
        return group


def _replay(
    take: _Take,
    key: bytes,
    value: bytes | None,
    offset: int,
    producer: ProducerIdentity | None,
    now_ms: int,
) -> None:
    """Consumer groups ask neither where a record stands nor when it was written."""
    take(key, value)


def _read_member_key(key: bytes) -> tuple[str, str]:
    stored = decode_versioned(ConsumerMemberKey, key)
    return stored.group_id, stored.member_id


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id)
