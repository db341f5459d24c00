"""Committing offsets, plainly or in a transaction: who may, and the records that tell of it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.offsets.record import (
    NO_EXPIRY,
    NO_LEADER_EPOCH,
    TEXT_SIZE_MAX,
    OffsetCommitValue,
    offset_record,
)
from headwater.coordinator.outcome import Change
from headwater.coordinator.stored_record import StoredRecord
from headwater.wire.schema import ZERO_UUID

#: From this version of OffsetCommit on a client is told that the group does not exist.
_NOT_FOUND_SINCE: Final = 9
#: From this version of TxnOffsetCommit on a producer is told that, and that a member is behind.
_TRANSACTIONAL_NOT_FOUND_SINCE: Final = 6


class Committer(NamedTuple):
    """Who commits: a member, or with a negative generation somebody outside of any group."""

    member_id: str = ""
    group_instance_id: str | None = None
    #: The member's epoch, in a group of the newer protocol.
    generation: int = -1


class NewOffset(NamedTuple):
    """An offset to commit."""

    topic_partition: TopicPartition
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = None
    #: Zero if the client named the topic, not its id.
    topic_id: uuid.UUID = ZERO_UUID


def check_commit(groups: Groups, group_id: str, committer: Committer, api_version: int) -> None:
    """Raise unless the committer may commit offsets of the group, which need not exist."""
    group = groups.find(group_id)
    if group is not None:
        group.check_offset_commit(*committer, is_transactional=False, api_version=api_version)
    elif committer.generation >= 0:
        if api_version >= _NOT_FOUND_SINCE:
            groups.get(group_id)
        raise _illegal_generation(group_id)


def check_transactional_commit(
    groups: Groups, group_id: str, committer: Committer, api_version: int
) -> None:
    """The same for a commit in a transaction: older producers know fewer errors."""
    knows_all = api_version >= _TRANSACTIONAL_NOT_FOUND_SINCE
    group = groups.find(group_id)
    if group is not None:
        try:
            group.check_offset_commit(*committer, is_transactional=True, api_version=api_version)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH and not knows_all:
                raise _illegal_generation(group_id) from error
            raise
    elif committer.generation >= 0:
        if knows_all:
            groups.get(group_id)
        raise _illegal_generation(group_id)


def commit_change(
    group_id: str,
    offsets: Sequence[NewOffset],
    now_ms: int,
    *,
    metadata_length_max: int,
    expire_ms: int | None = None,
) -> Change[list[ErrorCode]]:
    """A record for each offset that can be stored, and an answer for each, in order."""
    answers: list[ErrorCode] = []
    records: list[StoredRecord] = []
    for (topic, partition), offset, leader_epoch, metadata, topic_id in offsets:
        metadata = metadata or ""
        if _is_too_large(metadata, metadata_length_max):
            answers.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        value = OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms,
            expire_timestamp=NO_EXPIRY if expire_ms is None else expire_ms,
            topic_id=topic_id,
        )
        answers.append(ErrorCode.NONE)
        records.append(offset_record(group_id, topic, partition, value))
    return Change(answers, records)


def _is_too_large(metadata: str, length_max: int) -> bool:
    # Kafka counts characters here, whatever the setting's name says.
    return len(metadata) > length_max or len(metadata.encode()) > TEXT_SIZE_MAX


def _illegal_generation(group_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.ILLEGAL_GENERATION, f"There is no such generation of the group {group_id}."
    )
