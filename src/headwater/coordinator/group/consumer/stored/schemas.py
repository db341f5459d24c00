"""The stored messages of consumer groups: keys 3 to 8 and 16 of `__consumer_offsets`.

In Kafka's formats. A key is never flexible and its version is its kind; values are flexible in
their only version, 0. The metadata of partitions (key 4) is what releases before Kafka 4.1 wrote:
it is only deleted, so its value has no class here.
"""

from __future__ import annotations

import uuid
from typing import Final

from headwater.wire.schema import NEW, ZERO_UUID, Field, Message, Struct, VersionRange

GROUP_KEY: Final = 3
PARTITION_METADATA_KEY: Final = 4
MEMBER_KEY: Final = 5
TARGET_KEY: Final = 6
TARGET_MEMBER_KEY: Final = 7
CURRENT_KEY: Final = 8
REGEX_KEY: Final = 16


class ConsumerGroupKey(Message):
    """What concerns a group as a whole: its epoch, its target's epoch, its topics."""

    __slots__ = ("group_id",)

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id = group_id

    VERSIONS = VersionRange(GROUP_KEY, TARGET_KEY)
    FIELDS = (Field("group_id", "string", (GROUP_KEY, TARGET_KEY)),)


class ConsumerMemberKey(Message):
    """What concerns a member: its subscription, its target, its current assignment."""

    __slots__ = ("group_id", "member_id")

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id

    VERSIONS = VersionRange(MEMBER_KEY, CURRENT_KEY)
    FIELDS = (
        Field("group_id", "string", (MEMBER_KEY, CURRENT_KEY)),
        Field("member_id", "string", (MEMBER_KEY, CURRENT_KEY)),
    )


class ConsumerRegexKey(Message):
    __slots__ = ("group_id", "regular_expression")

    def __init__(self, *, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression

    VERSIONS = VersionRange(REGEX_KEY, REGEX_KEY)
    FIELDS = (
        Field("group_id", "string", (REGEX_KEY, REGEX_KEY)),
        Field("regular_expression", "string", (REGEX_KEY, REGEX_KEY)),
    )


class ConsumerGroupValue(Message):
    """The group's epoch, and a hash of the topics that it reads."""

    __slots__ = ("epoch", "metadata_hash")

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash

    FLEXIBLE_SINCE = 0
    FIELDS = (
        Field("epoch", "int32", (0, 0)),
        Field("metadata_hash", "int64", (0, 0), tag=0, tagged=(0, 0)),
    )


class SupportedProtocol(Struct):
    __slots__ = ("metadata", "name")

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata

    FIELDS = (Field("name", "string", (0, 0)), Field("metadata", "bytes", (0, 0)))


class ClassicMemberMetadata(Struct):
    __slots__ = ("session_timeout_ms", "supported_protocols")

    def __init__(
        self, *, session_timeout_ms: int = 0, supported_protocols: list[SupportedProtocol] = NEW
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is NEW else supported_protocols

    FIELDS = (
        Field("session_timeout_ms", "int32", (0, 0)),
        Field("supported_protocols", SupportedProtocol, (0, 0), array=True),
    )


class ConsumerMemberValue(Message):
    """What a member said of itself."""

    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = NEW,
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        classic_member_metadata: ClassicMemberMetadata | None = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = (
            [] if subscribed_topic_names is NEW else subscribed_topic_names
        )
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata

    FLEXIBLE_SINCE = 0
    FIELDS = (
        Field("instance_id", "string", (0, 0), nullable=(0, 0)),
        Field("rack_id", "string", (0, 0), nullable=(0, 0)),
        Field("client_id", "string", (0, 0)),
        Field("client_host", "string", (0, 0)),
        Field("subscribed_topic_names", "string", (0, 0), array=True),
        Field("subscribed_topic_regex", "string", (0, 0), nullable=(0, 0)),
        Field("rebalance_timeout_ms", "int32", (0, 0)),
        Field("server_assignor", "string", (0, 0), nullable=(0, 0)),
        Field(
            "classic_member_metadata",
            ClassicMemberMetadata,
            (0, 0),
            nullable=(0, 0),
            tag=0,
            tagged=(0, 0),
        ),
    )


class StoredPartitions(Struct):
    __slots__ = ("partitions", "topic_id")

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: list[int] = NEW) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is NEW else partitions

    FIELDS = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", "int32", (0, 0), array=True),
    )


class ConsumerTargetValue(Message):
    """The epoch of the group's target assignment."""

    __slots__ = ("assignment_epoch",)

    def __init__(self, *, assignment_epoch: int = 0) -> None:
        self.assignment_epoch = assignment_epoch

    FLEXIBLE_SINCE = 0
    FIELDS = (Field("assignment_epoch", "int32", (0, 0)),)


class ConsumerTargetMemberValue(Message):
    """What a member shall have."""

    __slots__ = ("topic_partitions",)

    def __init__(self, *, topic_partitions: list[StoredPartitions] = NEW) -> None:
        self.topic_partitions = [] if topic_partitions is NEW else topic_partitions

    FLEXIBLE_SINCE = 0
    FIELDS = (Field("topic_partitions", StoredPartitions, (0, 0), array=True),)


class ConsumerCurrentValue(Message):
    """What a member has, and where it stands."""

    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[StoredPartitions] = NEW,
        partitions_pending_revocation: list[StoredPartitions] = NEW,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is NEW else assigned_partitions
        self.partitions_pending_revocation = (
            [] if partitions_pending_revocation is NEW else partitions_pending_revocation
        )

    FLEXIBLE_SINCE = 0
    FIELDS = (
        Field("member_epoch", "int32", (0, 0)),
        Field("previous_member_epoch", "int32", (0, 0)),
        Field("state", "int8", (0, 0)),
        Field("assigned_partitions", StoredPartitions, (0, 0), array=True),
        Field("partitions_pending_revocation", StoredPartitions, (0, 0), array=True),
    )


class ConsumerRegexValue(Message):
    """The topics that a regular expression matched, and when that was found out."""

    __slots__ = ("timestamp", "topics", "version")

    def __init__(self, *, topics: list[str] = NEW, version: int = 0, timestamp: int = 0) -> None:
        self.topics = [] if topics is NEW else topics
        self.version = version
        self.timestamp = timestamp

    FLEXIBLE_SINCE = 0
    FIELDS = (
        Field("topics", "string", (0, 0), array=True),
        Field("version", "int64", (0, 0)),
        Field("timestamp", "int64", (0, 0)),
    )
