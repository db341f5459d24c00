"""DescribeDelayed (private API 10003, versions 0 and 1): messages that wait in partitions.

A partition is asked for one message, by its offset; or, if that is -1, for those of a sender's id;
or, if that is empty, for the first `limit` that are due from `from_ms` to `to_ms`, both included,
soonest first; from version 1 on without the first `skip` of these, so that a list can go on. With
a limit of 0 it answers with its counts alone, which every answer has.
"""

from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

_ALL = (0, 1)
_V1 = (1, 1)
_LONG_MAX = 2**63 - 1


class DescribeDelayedPartition(Struct):
    __slots__ = ("from_ms", "limit", "offset", "partition_index", "sender_id", "skip", "to_ms")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = -1,
        sender_id: bytes = b"",
        from_ms: int = 0,
        to_ms: int = _LONG_MAX,
        limit: int = 0,
        skip: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.sender_id = sender_id
        self.from_ms = from_ms
        self.to_ms = to_ms
        self.limit = limit
        self.skip = skip

    FIELDS = (
        Field("partition_index", "int32", _ALL),
        Field("offset", "int64", _ALL),
        Field("sender_id", "bytes", _ALL),
        Field("from_ms", "int64", _ALL),
        Field("to_ms", "int64", _ALL),
        Field("limit", "int32", _ALL),
        Field("skip", "int32", _V1),
    )


class DescribeDelayedTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[DescribeDelayedPartition] = NEW) -> None:
        self.name = name
        self.partitions = [] if partitions is NEW else partitions

    FIELDS = (
        Field("name", "string", _ALL),
        Field("partitions", DescribeDelayedPartition, _ALL, array=True),
    )


class DescribeDelayedRequest(Message):
    __slots__ = ("topics",)

    def __init__(self, *, topics: list[DescribeDelayedTopic] = NEW) -> None:
        self.topics = [] if topics is NEW else topics

    API_KEY = 10_003
    VERSIONS = VersionRange(0, 1)
    FLEXIBLE_SINCE = 0

    FIELDS = (Field("topics", DescribeDelayedTopic, _ALL, array=True),)


class DescribedMessage(Struct):
    """A message that waits; `expires_ms` is -1 and `sender_id` empty if it has none."""

    __slots__ = ("due_ms", "expires_ms", "key", "offset", "sender_id", "sent_ms", "size_bytes")

    def __init__(
        self,
        *,
        offset: int = -1,
        due_ms: int = -1,
        sent_ms: int = -1,
        expires_ms: int = -1,
        sender_id: bytes = b"",
        key: bytes | None = None,
        size_bytes: int = 0,
    ) -> None:
        self.offset = offset
        self.due_ms = due_ms
        self.sent_ms = sent_ms
        self.expires_ms = expires_ms
        self.sender_id = sender_id
        self.key = key
        self.size_bytes = size_bytes

    FIELDS = (
        Field("offset", "int64", _ALL),
        Field("due_ms", "int64", _ALL),
        Field("sent_ms", "int64", _ALL),
        Field("expires_ms", "int64", _ALL),
        Field("sender_id", "bytes", _ALL),
        Field("key", "bytes", _ALL, nullable=_ALL),
        Field("size_bytes", "int64", _ALL),
    )


class DescribedCounts(Struct):
    """What waits in a partition, and what its leader has counted since it started."""

    __slots__ = (
        "cancelled",
        "deleted",
        "delivered",
        "due_within_minute",
        "expired",
        "index_bytes",
        "next_due_ms",
        "rolled_bytes",
        "unknown",
        "waiting",
        "waiting_bytes",
    )

    def __init__(
        self,
        *,
        waiting: int = 0,
        waiting_bytes: int = 0,
        due_within_minute: int = 0,
        next_due_ms: int = -1,
        delivered: int = 0,
        cancelled: int = 0,
        expired: int = 0,
        unknown: int = 0,
        rolled_bytes: int = 0,
        index_bytes: int = 0,
        deleted: int = 0,
    ) -> None:
        self.waiting = waiting
        self.waiting_bytes = waiting_bytes
        self.due_within_minute = due_within_minute
        self.next_due_ms = next_due_ms
        self.delivered = delivered
        self.cancelled = cancelled
        self.expired = expired
        self.unknown = unknown
        self.rolled_bytes = rolled_bytes
        self.index_bytes = index_bytes
        self.deleted = deleted

    FIELDS = (
        Field("waiting", "int64", _ALL),
        Field("waiting_bytes", "int64", _ALL),
        Field("due_within_minute", "int64", _ALL),
        Field("next_due_ms", "int64", _ALL),
        Field("delivered", "int64", _ALL),
        Field("cancelled", "int64", _ALL),
        Field("expired", "int64", _ALL),
        Field("unknown", "int64", _ALL),
        Field("rolled_bytes", "int64", _ALL),
        Field("index_bytes", "int64", _ALL),
        Field("deleted", "int64", _V1),
    )


class DescribedDelayedPartition(Struct):
    """`has_more`: there are messages that were asked for, beyond those that are listed."""

    __slots__ = (
        "counts",
        "error_code",
        "error_message",
        "has_more",
        "messages",
        "partition_index",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        messages: list[DescribedMessage] = NEW,
        has_more: bool = False,
        counts: DescribedCounts = NEW,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.messages = [] if messages is NEW else messages
        self.has_more = has_more
        self.counts = DescribedCounts() if counts is NEW else counts

    FIELDS = (
        Field("partition_index", "int32", _ALL),
        Field("error_code", "int16", _ALL),
        Field("error_message", "string", _ALL, nullable=_ALL),
        Field("messages", DescribedMessage, _ALL, array=True),
        Field("has_more", "bool", _ALL),
        Field("counts", DescribedCounts, _ALL),
    )


class DescribedDelayedTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self, *, name: str = "", partitions: list[DescribedDelayedPartition] = NEW
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is NEW else partitions

    FIELDS = (
        Field("name", "string", _ALL),
        Field("partitions", DescribedDelayedPartition, _ALL, array=True),
    )


class DescribeDelayedResponse(Message):
    __slots__ = ("topics",)

    def __init__(self, *, topics: list[DescribedDelayedTopic] = NEW) -> None:
        self.topics = [] if topics is NEW else topics

    API_KEY = 10_003
    VERSIONS = VersionRange(0, 1)
    FLEXIBLE_SINCE = 0

    FIELDS = (Field("topics", DescribedDelayedTopic, _ALL, array=True),)
