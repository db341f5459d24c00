"""A record as a consumer's user gets it."""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.wire.delayed.headers import DELAYED_OFFSET_HEADER, ORDER_HEADER, SENT_AT_HEADER
from headwater.wire.records import Header, TimestampType


class Delayed(NamedTuple):
    """What is known of a record that was delivered later than it was sent."""

    #: What its producer was told, and it was known by while it waited.
    id: MessageId
    sent_ms: int


class ConsumerRecord(NamedTuple):
    """Key and value are what the deserializers made of them: bytes if there are none."""

    topic: str
    partition: int
    offset: int
    #: Milliseconds since 1970; -1 if the record has none.
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]
    leader_epoch: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def delayed(self) -> Delayed | None:
        """Where it comes from, if it was sent with a delay; `timestamp` is when it was due."""
        # The broker's headers are the last ones, so most records are told by one look.
        if len(self.headers) < 3 or self.headers[-1][0] != ORDER_HEADER:
            return None
        (sent_name, sent), (offset_name, offset) = self.headers[-3:-1]
        try:
            if (sent_name, offset_name) != (SENT_AT_HEADER, DELAYED_OFFSET_HEADER):
                return None
            message_id = MessageId(self.topic, self.partition, int(offset or b""))
            return Delayed(message_id, int(sent or b""))
        except ValueError:
            return None
