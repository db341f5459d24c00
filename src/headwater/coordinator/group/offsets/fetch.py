"""Telling a group's committed offsets, for named partitions or for all that it has."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.coordinator.group.offsets.record import NO_LEADER_EPOCH
from headwater.coordinator.group.offsets.store import CommittedOffset, OffsetStore
from headwater.wire.schema import ZERO_UUID

NO_OFFSET: Final = -1


class WantedOffset(NamedTuple):
    """A partition that somebody asks for."""

    topic_partition: TopicPartition
    #: Zero if the client named the topic, not its id.
    topic_id: uuid.UUID = ZERO_UUID


class FetchedOffset(NamedTuple):
    """The answer for one partition; without a committed offset it has none, and no error."""

    topic_partition: TopicPartition
    offset: int = NO_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


def fetch_named(
    store: OffsetStore, group_id: str, wanted: Iterable[WantedOffset], *, require_stable: bool
) -> list[FetchedOffset]:
    """An answer for each of them, in order."""
    committed = store.committed(group_id)
    fetched: list[FetchedOffset] = []
    for key, topic_id in wanted:
        offset = committed.get(key)
        if require_stable and store.is_pending(group_id, key):
            fetched.append(_unstable(key))
        elif offset is None or not offset.is_of(topic_id):
            # Also if the topic was deleted and made anew: the offset means nothing there.
            fetched.append(FetchedOffset(key))
        else:
            fetched.append(_stable(key, offset))
    return fetched


def fetch_all(store: OffsetStore, group_id: str, *, require_stable: bool) -> list[FetchedOffset]:
    """All that the group has committed, ordered by topic and partition."""
    return [
        _unstable(key)
        if require_stable and store.is_pending(group_id, key)
        else _stable(key, offset)
        for key, offset in sorted(store.committed(group_id).items())
    ]


def _stable(key: TopicPartition, offset: CommittedOffset) -> FetchedOffset:
    return FetchedOffset(key, offset.offset, offset.leader_epoch, offset.metadata)


def _unstable(key: TopicPartition) -> FetchedOffset:
    return FetchedOffset(key, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
