"""Topics that a broker itself has the controller create, such as those of the coordinators."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext
from headwater.broker.requests.forwarding import ask_controller
from headwater.broker.requests.image_waits import wait_for_image
from headwater.cluster.topics.new_topic import NewTopic
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

#: The controller says itself when a request's time is over.
_ANSWER_GRACE_S = 5.0


async def request_topics(
    broker: BrokerContext, topics: Sequence[NewTopic], timeout_ms: int
) -> dict[str, KafkaError]:
    """Have topics created, and return when this broker knows them; by name, which were not.

    Raises `KafkaError` if the controller cannot be asked.
    """
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=timeout_ms
    )
    timeout_s = timeout_ms / 1000 + _ANSWER_GRACE_S
    response: CreateTopicsResponse = await ask_controller(broker, request, timeout_s)
    failures = {
        result.name: KafkaError(ErrorCode.from_wire(result.error_code), result.error_message or "")
        for result in response.topics
        if result.error_code
    }
    present = [
        topic.name
        for topic in topics
        if topic.name not in failures or failures[topic.name].code is ErrorCode.TOPIC_ALREADY_EXISTS
    ]
    await wait_for_image(broker, lambda image: all(name in image.topics for name in present))
    return failures


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )
