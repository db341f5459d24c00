"""What each topic takes, asked once for a task: which partitions, and how large a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headwater.base.errors import InvalidTopicError, KafkaError
from headwater.base.ids import validate_topic_name
from headwater.client.admin import Admin
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.client.errors import UnknownTopicError
from headwater.client.kafka_errors import UnknownTopicOrPartitionError
from headwater.client.producer.errors import TopicNotKnownError
from headwater.client.producer.producer import Producer

_SIZE_SETTING: Final = "max.message.bytes"


@dataclass(frozen=True, slots=True)
class TopicLimits:
    partition_count: int
    #: None if the topic does not say, or not to us: then it is left to its broker.
    batch_bytes_max: int | None


#: The limits of a topic, or why nothing can be written to it.
FindLimits = Callable[[str], TopicLimits | KafkaError]


class LimitsOfTopics:
    """For one task. Other failures than those of a topic, such as missing rights, are raised."""

    def __init__(self, producer: Producer, admin: Admin) -> None:
        self._producer = producer
        self._admin = admin
        self._found: dict[str, TopicLimits | KafkaError] = {}

    def __call__(self, topic: str) -> TopicLimits | KafkaError:
        # One that was waited for in vain is not waited for again.
        if topic not in self._found:
            self._found[topic] = self._find(topic)
        return self._found[topic]

    def _find(self, topic: str) -> TopicLimits | KafkaError:
        try:
            validate_topic_name(topic)
            partitions = self._producer.partitions_for(topic)
        except InvalidTopicError as error:
            return error
        except TopicNotKnownError as error:
            # Only if the cluster says so: that nobody answers is no fault of a row.
            if isinstance(error.__cause__, UnknownTopicOrPartitionError):
                return UnknownTopicError.topic(topic)
            raise
        count = max((each.partition for each in partitions), default=-1) + 1
        return TopicLimits(count, self._batch_bytes_max(topic))

    def _batch_bytes_max(self, topic: str) -> int | None:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            entries = self._admin.describe_configs([resource], names=[_SIZE_SETTING])[resource]
        except KafkaError:
            return None
        if isinstance(entries, KafkaError):
            return None
        texts = {each.name: each.value for each in entries}
        text = texts.get(_SIZE_SETTING) or ""
        return int(text) if text.isdecimal() else None
