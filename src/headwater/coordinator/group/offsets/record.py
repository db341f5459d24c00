"""How `__consumer_offsets` stores a committed offset: the key names it, the value holds it.

Key versions 0 and 1 look alike; 1 is written. Of the value's versions 4 is written, as Kafka 4.1
does, or 1 if the client set its own retention, for which later versions have no room.
"""

from __future__ import annotations

import uuid
from typing import Final

from headwater.coordinator.stored_record import (
    StoredRecord,
    decode_versioned,
    encode_versioned,
)
from headwater.wire.schema import ZERO_UUID, Field, Message, VersionRange

#: The versions of a key that tell a committed offset.
OFFSET_KEY_VERSIONS: Final = (0, 1)

NO_EXPIRY: Final = -1
NO_LEADER_EPOCH: Final = -1

#: A text is stored behind two bytes for its size.
TEXT_SIZE_MAX: Final = 2**15 - 1

_KEY_VERSION: Final = 1
_WITH_EXPIRY: Final = 1
_NEWEST: Final = 4


class OffsetCommitKey(Message):
    __slots__ = ("group", "partition", "topic")

    def __init__(self, *, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition

    VERSIONS = VersionRange(0, 1)

    FIELDS = (
        Field("group", "string", (0, 1)),
        Field("topic", "string", (0, 1)),
        Field("partition", "int32", (0, 1)),
    )


class OffsetCommitValue(Message):
    __slots__ = (
        "commit_timestamp",
        "expire_timestamp",
        "leader_epoch",
        "metadata",
        "offset",
        "topic_id",
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = NO_EXPIRY,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id

    VERSIONS = VersionRange(0, 4)
    FLEXIBLE_SINCE = 4

    FIELDS = (
        Field("offset", "int64", (0, 4)),
        Field("leader_epoch", "int32", (3, 4)),
        Field("metadata", "string", (0, 4)),
        Field("commit_timestamp", "int64", (0, 4)),
        Field("expire_timestamp", "int64", (1, 1)),
        Field("topic_id", "uuid", (4, 4), tag=0, tagged=(4, 4)),
    )


def offset_record(group: str, topic: str, partition: int, value: OffsetCommitValue) -> StoredRecord:
    """The record of a commit."""
    version = _NEWEST if value.expire_timestamp == NO_EXPIRY else _WITH_EXPIRY
    return StoredRecord(_key(group, topic, partition), encode_versioned(value, version))


def offset_tombstone(group: str, topic: str, partition: int) -> StoredRecord:
    """The record that forgets a committed offset."""
    return StoredRecord(_key(group, topic, partition), None)


def read_offset_key(key: bytes) -> OffsetCommitKey:
    """What a key of one of `OFFSET_KEY_VERSIONS` names; raises `MalformedMessageError`."""
    return decode_versioned(OffsetCommitKey, key)


def read_offset_value(value: bytes) -> OffsetCommitValue:
    """A committed offset of any version; raises `MalformedMessageError`."""
    return decode_versioned(OffsetCommitValue, value)


def _key(group: str, topic: str, partition: int) -> bytes:
    return encode_versioned(
        OffsetCommitKey(group=group, topic=topic, partition=partition), _KEY_VERSION
    )
