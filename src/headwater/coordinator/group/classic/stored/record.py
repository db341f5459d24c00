"""How `__consumer_offsets` stores a classic group: its members, and what they were assigned.

The key's version is 2. Of the value's versions 3 is written, as Kafka does, and all are read.
"""

from __future__ import annotations

from typing import Final

from headwater.coordinator.stored_record import (
    StoredRecord,
    decode_versioned,
    encode_versioned,
)
from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

#: The version of a key that tells a classic group.
GROUP_METADATA_KEY_VERSION: Final = 2

NO_TIMESTAMP: Final = -1
_VALUE_VERSION: Final = 3


class GroupMetadataKey(Message):
    __slots__ = ("group",)

    def __init__(self, *, group: str = "") -> None:
        self.group = group

    VERSIONS = VersionRange(GROUP_METADATA_KEY_VERSION, GROUP_METADATA_KEY_VERSION)

    FIELDS = (Field("group", "string", (GROUP_METADATA_KEY_VERSION, GROUP_METADATA_KEY_VERSION)),)


class MemberMetadata(Struct):
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "member_id",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment

    FIELDS = (
        Field("member_id", "string", (0, 4)),
        Field("group_instance_id", "string", (3, 4), nullable=(3, 4)),
        Field("client_id", "string", (0, 4)),
        Field("client_host", "string", (0, 4)),
        Field("rebalance_timeout", "int32", (1, 4)),
        Field("session_timeout", "int32", (0, 4)),
        Field("subscription", "bytes", (0, 4)),
        Field("assignment", "bytes", (0, 4)),
    )


class GroupMetadataValue(Message):
    __slots__ = (
        "current_state_timestamp",
        "generation",
        "leader",
        "members",
        "protocol",
        "protocol_type",
    )

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = None,
        leader: str | None = None,
        current_state_timestamp: int = NO_TIMESTAMP,
        members: list[MemberMetadata] = NEW,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is NEW else members

    VERSIONS = VersionRange(0, 4)
    FLEXIBLE_SINCE = 4

    FIELDS = (
        Field("protocol_type", "string", (0, 4)),
        Field("generation", "int32", (0, 4)),
        Field("protocol", "string", (0, 4), nullable=(0, 4)),
        Field("leader", "string", (0, 4), nullable=(0, 4)),
        Field("current_state_timestamp", "int64", (2, 4)),
        Field("members", MemberMetadata, (0, 4), array=True),
    )


def group_metadata_record(group_id: str, value: GroupMetadataValue) -> StoredRecord:
    """The record that says what a group is now."""
    return StoredRecord(_key(group_id), encode_versioned(value, _VALUE_VERSION))


def group_metadata_tombstone(group_id: str) -> StoredRecord:
    """The record that forgets a group."""
    return StoredRecord(_key(group_id), None)


def read_group_metadata_key(key: bytes) -> str:
    """The id of the group that a key names; raises `MalformedMessageError`."""
    return decode_versioned(GroupMetadataKey, key).group


def read_group_metadata_value(value: bytes) -> GroupMetadataValue:
    """A group of any version; raises `MalformedMessageError`."""
    return decode_versioned(GroupMetadataValue, value)


def _key(group_id: str) -> bytes:
    return encode_versioned(GroupMetadataKey(group=group_id), GROUP_METADATA_KEY_VERSION)
