"""Headwater: a Kafka-compatible event-streaming platform in Python.

The names of the client are here, for `from headwater import Producer, Consumer, Admin`. Each is
loaded when it is first asked for, so that the broker and the command load none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.base.errors import KafkaError
    from headwater.base.ids import TopicPartition
    from headwater.client.admin import Admin, AsyncAdmin, NewTopic
    from headwater.client.consumer.async_consumer import AsyncConsumer
    from headwater.client.consumer.consumer import Consumer
    from headwater.client.consumer.consumer_record import ConsumerRecord
    from headwater.client.consumer.listeners import RebalanceListener
    from headwater.client.consumer.membership import GroupIdentity
    from headwater.client.consumer.offset_and_metadata import OffsetAndMetadata
    from headwater.client.producer.async_producer import AsyncProducer
    from headwater.client.producer.producer import Producer
    from headwater.client.producer.record_metadata import RecordMetadata

__version__ = "0.3.0"

_MODULES = {
    "Admin": "client.admin",
    "AsyncAdmin": "client.admin",
    "AsyncConsumer": "client.consumer.async_consumer",
    "AsyncProducer": "client.producer.async_producer",
    "Consumer": "client.consumer.consumer",
    "ConsumerRecord": "client.consumer.consumer_record",
    "GroupIdentity": "client.consumer.membership",
    "KafkaError": "base.errors",
    "NewTopic": "client.admin",
    "OffsetAndMetadata": "client.consumer.offset_and_metadata",
    "Producer": "client.producer.producer",
    "RebalanceListener": "client.consumer.listeners",
    "RecordMetadata": "client.producer.record_metadata",
    "TopicPartition": "base.ids",
}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "ConsumerRecord",
    "GroupIdentity",
    "KafkaError",
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "RebalanceListener",
    "RecordMetadata",
    "TopicPartition",
    "__version__",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
