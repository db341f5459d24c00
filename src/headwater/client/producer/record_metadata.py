"""Where a record was written: what a producer's futures and callbacks tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId


class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    #: -1 with acks=0, since nobody told.
    offset: int
    #: Milliseconds since 1970: the record's own, or the broker's where it stamps records itself.
    timestamp: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def message_id(self) -> MessageId:
        """By which the message can be cancelled while it waits, if it was sent with a delay."""
        return MessageId(self.topic, self.partition, self.offset)


#: Gets where the record is, or why it is not there: one of the two is None.
OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], object]
