"""What the conformance tests ask of any Kafka client, in the words of none of them.

Each third-party client has an adapter of its name beside this module. An adapter turns the calls
below into its client's own, and its client's errors into a `ClientError` with the name that Kafka's
protocol gives the error. It adds nothing: no retry, no check, no default that would hide what the
client and the broker do with each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from headwater.base.errors import ErrorCode
from tests.support.requirements import skip_or_fail

#: How long any one call of a client may take; far more than it ever does.
TIMEOUT_S = 20.0
#: How long a consumer lets the broker wait for more; short, as most tests read to the end.
FETCH_WAIT_MS = 50

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = tuple[tuple[str, bytes | None], ...]
Start = int | Literal["earliest", "latest"]


class Message(NamedTuple):
    """What a producer is given."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int = 0
    timestamp_ms: int | None = None


class Sending(NamedTuple):
    """How a producer is set up."""

    compression: str = "none"
    #: 0, 1, or -1 for all.
    acks: int = -1
    is_idempotent: bool = False
    #: The client's own limit; the broker's is another.
    message_bytes_max: int = 1_000_000
    #: How long a producer waits for records to be acknowledged, retries included.
    timeout_s: float = TIMEOUT_S


DEFAULT_SENDING = Sending()


class Consumed(NamedTuple):
    """What a consumer is given."""

    offset: int
    timestamp_ms: int
    #: Whether the time is the broker's, of the append, and not the producer's.
    is_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: Headers


class Setting(NamedTuple):
    """A setting of a topic or a broker, as the broker describes it."""

    value: str | None
    is_default: bool
    is_read_only: bool


class ClientError(Exception):
    """A client reported an error; `name` is the protocol's, or the client's own with a dash."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


class Client(Protocol):
    """Produces, consumes without a group, and looks around."""

    name: str
    #: Whether a record can be given a time of its own choice.
    sets_timestamps: bool
    #: Whether a producer is told the offsets of its records.
    reports_offsets: bool
    #: Whether a null header value can be sent.
    sends_null_headers: bool

    def __init__(self, bootstrap: str) -> None: ...

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = DEFAULT_SENDING
    ) -> list[int]:
        """Send all with one producer; the offsets in order, where the client reports them."""

    def consume(self, topic: str, start: Start, partition: int = 0) -> list[Consumed]:
        """From `start` up to the end of the partition."""

    def consume_since(self, topic: str, timestamp_ms: int, partition: int = 0) -> list[Consumed]:
        """From the first record that is not older than a time, up to the end."""

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        """Where the first record that is not older lies; None if there is none."""

    def end_offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The earliest offset and the one that the next record will get."""

    def partition_counts(self) -> dict[str, int]:
        """Every topic that the broker lists."""


class AdminClient(Client, Protocol):
    """A client that can also administer."""

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replicas: int = 1,
        settings: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def grow_topic(self, topic: str, partitions: int) -> None:
        """Ask for so many partitions in total."""

    def topic_settings(self, topic: str) -> dict[str, Setting]: ...

    def broker_settings(self, broker_id: int) -> dict[str, Setting]: ...

    def alter_topic(self, topic: str, settings: Mapping[str, str]) -> None: ...

    def alter_broker(self, broker_id: int, settings: Mapping[str, str]) -> None: ...

    def reset_broker(self, broker_id: int, settings: Sequence[str]) -> None:
        """Let the settings have again what the broker was started with."""

    def delete_records(self, topic: str, before_offset: int, partition: int = 0) -> int:
        """Returns the new earliest offset."""

    def broker_ids(self) -> list[int]: ...


def require_package(module: str, package: str) -> Any:
    """The module of an optional package; the test is skipped, or failed, where there is none."""
    try:
        return importlib.import_module(module)
    except ImportError:
        skip_or_fail(f"this test needs the package {package}, which is not installed")


def error_name(code: int, otherwise: str) -> str:
    """What the protocol calls an error; a client's own, which have other codes, get a dash."""
    names = {int(each): each.name for each in ErrorCode}
    return names[code] if code > 0 and code in names else f"-{otherwise}"
