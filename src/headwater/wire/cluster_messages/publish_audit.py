"""PublishAudit (private API 10010, version 0): what was counted in stretches of logs, to `__audit`.

It goes to the leader of one partition of `__audit`. A source is a log that somebody counts: its
name, and the stretch [from, to) that the records tell of. They are written if the source was
published up to `from_offset`, and else not. The answer says for each source up to where it is
published now, -1 for nowhere, and in which epoch its leader counted that, -1 if that is not known.
A source without records asks only that.
"""

from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

_V0 = (0, 0)


class AuditRecordData(Struct):
    __slots__ = ("key", "value")

    def __init__(self, *, key: bytes = b"", value: bytes = b"") -> None:
        self.key = key
        self.value = value

    FIELDS = (
        Field("key", "bytes", _V0),
        Field("value", "bytes", _V0),
    )


class PublishAuditSource(Struct):
    __slots__ = ("from_offset", "records", "source", "to_offset")

    def __init__(
        self,
        *,
        source: str = "",
        from_offset: int = -1,
        to_offset: int = -1,
        records: list[AuditRecordData] = NEW,
    ) -> None:
        self.source = source
        self.from_offset = from_offset
        self.to_offset = to_offset
        self.records = [] if records is NEW else records

    FIELDS = (
        Field("source", "string", _V0),
        Field("from_offset", "int64", _V0),
        Field("to_offset", "int64", _V0),
        Field("records", AuditRecordData, _V0, array=True),
    )


class PublishAuditRequest(Message):
    __slots__ = ("partition_index", "sources")

    def __init__(
        self, *, partition_index: int = 0, sources: list[PublishAuditSource] = NEW
    ) -> None:
        self.partition_index = partition_index
        self.sources = [] if sources is NEW else sources

    API_KEY = 10_010
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("partition_index", "int32", _V0),
        Field("sources", PublishAuditSource, _V0, array=True),
    )


class PublishedSource(Struct):
    __slots__ = ("leader_epoch", "published_offset", "source")

    def __init__(
        self, *, source: str = "", published_offset: int = -1, leader_epoch: int = -1
    ) -> None:
        self.source = source
        self.published_offset = published_offset
        self.leader_epoch = leader_epoch

    FIELDS = (
        Field("source", "string", _V0),
        Field("published_offset", "int64", _V0),
        Field("leader_epoch", "int32", _V0),
    )


class PublishAuditResponse(Message):
    __slots__ = ("error_code", "error_message", "sources")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        sources: list[PublishedSource] = NEW,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.sources = [] if sources is NEW else sources

    API_KEY = 10_010
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("error_code", "int16", _V0),
        Field("error_message", "string", _V0, nullable=_V0),
        Field("sources", PublishedSource, _V0, array=True),
    )
