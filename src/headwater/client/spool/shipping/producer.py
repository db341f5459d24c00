"""What a shipper needs of a producer, and what it makes of the errors that producer meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Final, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.record_metadata import RecordMetadata
from headwater.wire.records import Header


class Delivery(Protocol):
    """The future of a record."""

    def done(self) -> bool: ...

    def exception(self, timeout_s: float | None = None) -> KafkaError | None: ...

    def result(self, timeout_s: float | None = None) -> RecordMetadata: ...

    def add_done_callback(self, callback: Callable[[Any], object]) -> None: ...


class ShippingProducer(Protocol):
    """An ordinary producer, without serializers, that does not give up by itself."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
    ) -> Delivery: ...

    def partitions_for(self, topic: str) -> Sequence[object]: ...

    def close(self, timeout_s: float | None = None) -> None: ...

    def metrics(self) -> dict[str, float]: ...


#: What such a producer is made with: it keeps order and repeats nothing that was written, and it
#: retries for as long as a batch can wait (24 days), for the spool outlasts any outage anyway. It
#: blocks only briefly, so that closing need not wait.
SHIPPING_SETTINGS: Final[dict[str, object]] = {
    "enable.idempotence": True,
    "acks": "all",
    "retries": 2**31 - 1,
    "delivery.timeout.ms": 2**31 - 1,
    "max.block.ms": 1000,
    "buffer.full.policy": "block",
}

_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
    }
)


class Trouble(Enum):
    """What an error means for a record that was to be shipped."""

    #: The broker will never take this record.
    REFUSED = auto()
    #: The cluster has no such topic, which may be so only for now.
    TOPIC_MISSING = auto()
    #: Trying again may help.
    PASSING = auto()
    #: This producer can do nothing more; a new one may.
    PRODUCER_SPENT = auto()


def trouble_of(error: KafkaError) -> Trouble:
    cause = error.__cause__
    is_missing = isinstance(cause, KafkaError) and cause.code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
    if is_missing:
        return Trouble.TOPIC_MISSING
    if error.code in _REFUSALS:
        return Trouble.REFUSED
    return Trouble.PASSING if error.retriable else Trouble.PRODUCER_SPENT
