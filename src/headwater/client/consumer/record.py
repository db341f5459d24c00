"""A record as a consumer's user gets it."""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.wire.records import Header, TimestampType


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
