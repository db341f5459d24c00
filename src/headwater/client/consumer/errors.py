"""What can go wrong for a consumer besides what brokers answer."""

from __future__ import annotations

from typing import Any

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.kafka_errors import (
    InvalidGroupIdError,
    InvalidRecordError,
    InvalidRequestError,
    OffsetOutOfRangeError,
)


class SubscriptionError(InvalidRequestError):
    """Topics, patterns and partitions were mixed, or none was given."""

    advice = ""


class NoGroupError(InvalidGroupIdError):
    """What was asked for needs a group, and the consumer has none."""

    advice = ""


class NotAssignedError(InvalidRequestError):
    """The partition is not among those that the consumer reads."""

    advice = ""


class ConcurrentUseError(InvalidRequestError):
    """A consumer was used by two threads or tasks at once; only `wakeup` may be."""

    advice = ""


class WakeupError(KafkaError):
    """`wakeup` was called: the poll that waits, or the next one, ends with this."""

    code = ErrorCode.REQUEST_TIMED_OUT


class InvalidOffsetError(OffsetOutOfRangeError):
    """There is no valid offset to read from, and `auto.offset.reset` is none."""

    advice = ""

    def __init__(self, topic_partition: TopicPartition, detail: str) -> None:
        super().__init__(detail)
        self.topic_partition = topic_partition

    def __reduce__(self) -> Any:
        return type(self), (self.topic_partition, self.detail)


class NoOffsetForPartitionError(InvalidOffsetError):
    """The group has committed no offset for the partition."""

    @classmethod
    def of(cls, topic_partition: TopicPartition) -> NoOffsetForPartitionError:
        return cls(
            topic_partition,
            f"There is no committed offset for {topic_partition}, and auto.offset.reset is none: "
            "seek to where it is to be read from.",
        )


class LogTruncationError(InvalidOffsetError):
    """The new leader does not have what was read already.

    `divergent_offset` is the first offset that may have other records than were read, None if
    the leader cannot tell.
    """

    def __init__(
        self, topic_partition: TopicPartition, detail: str, divergent_offset: int | None
    ) -> None:
        super().__init__(topic_partition, detail)
        self.divergent_offset = divergent_offset

    def __reduce__(self) -> Any:
        return type(self), (self.topic_partition, self.detail, self.divergent_offset)


class RecordDeserializationError(InvalidRecordError):
    """A deserializer failed; seek to one offset further to leave the record out."""

    advice = ""

    def __init__(self, topic_partition: TopicPartition, offset: int, detail: str) -> None:
        super().__init__(detail)
        self.topic_partition = topic_partition
        self.offset = offset

    def __reduce__(self) -> Any:
        return type(self), (self.topic_partition, self.offset, self.detail)
