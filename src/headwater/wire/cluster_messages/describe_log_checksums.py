"""DescribeLogChecksums (private API 10011, version 0): what a replica holds, in a few numbers.

Any replica answers, for batches from `from_offset` up to `to_offset`, which must not be behind its
high watermark; with -1 for both it tells only its bounds. A run is what lies between two multiples
of `run_offsets`, by the first offsets of batches, and its checksum is a chain over them. Where more
is asked for than one answer has, `next_offset` says where to go on.
"""

from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

_ALL = (0, 0)


class DescribeLogChecksumsRequest(Message):
    __slots__ = ("from_offset", "partition_index", "run_offsets", "to_offset", "topic")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_index: int = 0,
        from_offset: int = -1,
        to_offset: int = -1,
        run_offsets: int = 1,
    ) -> None:
        self.topic = topic
        self.partition_index = partition_index
        self.from_offset = from_offset
        self.to_offset = to_offset
        self.run_offsets = run_offsets

    API_KEY = 10_011
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("topic", "string", _ALL),
        Field("partition_index", "int32", _ALL),
        Field("from_offset", "int64", _ALL),
        Field("to_offset", "int64", _ALL),
        Field("run_offsets", "int64", _ALL),
    )


class ChecksumRun(Struct):
    """Batches, from the first one's first offset to behind the last one's last."""

    __slots__ = ("batch_count", "checksum", "from_offset", "to_offset")

    def __init__(
        self,
        *,
        from_offset: int = 0,
        to_offset: int = 0,
        batch_count: int = 0,
        checksum: int = 0,
    ) -> None:
        self.from_offset = from_offset
        self.to_offset = to_offset
        self.batch_count = batch_count
        self.checksum = checksum

    FIELDS = (
        Field("from_offset", "int64", _ALL),
        Field("to_offset", "int64", _ALL),
        Field("batch_count", "int32", _ALL),
        Field("checksum", "int64", _ALL),
    )


class DescribeLogChecksumsResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "high_watermark",
        "log_start_offset",
        "next_offset",
        "runs",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        log_start_offset: int = -1,
        high_watermark: int = -1,
        next_offset: int = -1,
        runs: list[ChecksumRun] = NEW,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.next_offset = next_offset
        self.runs = [] if runs is NEW else runs

    API_KEY = 10_011
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("error_code", "int16", _ALL),
        Field("error_message", "string", _ALL, nullable=_ALL),
        Field("log_start_offset", "int64", _ALL),
        Field("high_watermark", "int64", _ALL),
        Field("next_offset", "int64", _ALL),
        Field("runs", ChecksumRun, _ALL, array=True),
    )
