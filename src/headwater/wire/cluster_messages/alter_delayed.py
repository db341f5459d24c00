"""AlterDelayed (private API 10004, version 0): cancel messages that wait, or give them a new time.

A change names one message, by its offset, or all of a sender's id. Its kind is 0 to cancel, 1 to
deliver at `due_ms`, 2 to deliver now. The answer comes when the changes are as safe as a record
written with acks=all, and tells for each of them which messages it concerned.
"""

from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

_V0 = (0, 0)


class AlterDelayedChange(Struct):
    __slots__ = ("due_ms", "kind", "offset", "sender_id")

    def __init__(
        self, *, kind: int = 0, offset: int = -1, sender_id: bytes = b"", due_ms: int = -1
    ) -> None:
        self.kind = kind
        self.offset = offset
        self.sender_id = sender_id
        self.due_ms = due_ms

    FIELDS = (
        Field("kind", "int8", _V0),
        Field("offset", "int64", _V0),
        Field("sender_id", "bytes", _V0),
        Field("due_ms", "int64", _V0),
    )


class AlterDelayedPartition(Struct):
    __slots__ = ("changes", "partition_index")

    def __init__(
        self, *, partition_index: int = 0, changes: list[AlterDelayedChange] = NEW
    ) -> None:
        self.partition_index = partition_index
        self.changes = [] if changes is NEW else changes

    FIELDS = (
        Field("partition_index", "int32", _V0),
        Field("changes", AlterDelayedChange, _V0, array=True),
    )


class AlterDelayedTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[AlterDelayedPartition] = NEW) -> None:
        self.name = name
        self.partitions = [] if partitions is NEW else partitions

    FIELDS = (
        Field("name", "string", _V0),
        Field("partitions", AlterDelayedPartition, _V0, array=True),
    )


class AlterDelayedRequest(Message):
    __slots__ = ("timeout_ms", "topics")

    def __init__(self, *, timeout_ms: int = 0, topics: list[AlterDelayedTopic] = NEW) -> None:
        self.timeout_ms = timeout_ms
        self.topics = [] if topics is NEW else topics

    API_KEY = 10_004
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("timeout_ms", "int32", _V0),
        Field("topics", AlterDelayedTopic, _V0, array=True),
    )


class AlteredDelayed(Struct):
    """What became of one change: the offsets of the messages that it concerned, or why none was."""

    __slots__ = ("error_code", "error_message", "offsets")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        offsets: list[int] = NEW,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.offsets = [] if offsets is NEW else offsets

    FIELDS = (
        Field("error_code", "int16", _V0),
        Field("error_message", "string", _V0, nullable=_V0),
        Field("offsets", "int64", _V0, array=True),
    )


class AlteredDelayedPartition(Struct):
    """The results are in the order of the changes; there are none if the partition refused all."""

    __slots__ = ("error_code", "error_message", "partition_index", "results")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        results: list[AlteredDelayed] = NEW,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is NEW else results

    FIELDS = (
        Field("partition_index", "int32", _V0),
        Field("error_code", "int16", _V0),
        Field("error_message", "string", _V0, nullable=_V0),
        Field("results", AlteredDelayed, _V0, array=True),
    )


class AlteredDelayedTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[AlteredDelayedPartition] = NEW) -> None:
        self.name = name
        self.partitions = [] if partitions is NEW else partitions

    FIELDS = (
        Field("name", "string", _V0),
        Field("partitions", AlteredDelayedPartition, _V0, array=True),
    )


class AlterDelayedResponse(Message):
    __slots__ = ("topics",)

    def __init__(self, *, topics: list[AlteredDelayedTopic] = NEW) -> None:
        self.topics = [] if topics is NEW else topics

    API_KEY = 10_004
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (Field("topics", AlteredDelayedTopic, _V0, array=True),)
