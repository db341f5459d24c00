"""Headwater: a Kafka-compatible event-streaming platform in Python.

The names of the client are here, for `from headwater import Producer, Consumer, Admin`. Each is
loaded when it is first asked for, so that the broker and the command load none of them.
"""

# The name that type checkers take for true; `typing` itself takes longer to load than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from headwater.base.errors import ErrorCode, KafkaError
    from headwater.base.ids import TopicPartition
    from headwater.base.message_id import MessageId
    from headwater.client.admin import Admin, AsyncAdmin, NewTopic
    from headwater.client.assignors.assignor import (
        MemberAssignment,
        MemberSubscription,
        PlainAssignor,
        RebalanceProtocol,
    )
    from headwater.client.consumer.async_consumer import AsyncConsumer
    from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
    from headwater.client.consumer.consumer import Consumer
    from headwater.client.consumer.deserializers import (
        IntegerDeserializer,
        JsonDeserializer,
        StringDeserializer,
    )
    from headwater.client.consumer.listeners import ConsumerInterceptor, RebalanceListener
    from headwater.client.consumer.membership.membership import GroupIdentity
    from headwater.client.consumer.record import ConsumerRecord
    from headwater.client.consumer.workers.failure_policy import FailurePolicy
    from headwater.client.consumer.workers.pool import WorkerPool
    from headwater.client.consumer.workers.threads import ConsumerThreads
    from headwater.client.message_id import SenderId
    from headwater.client.producer.async_producer import AsyncProducer
    from headwater.client.producer.batches.delivery_future import DeliveryFuture
    from headwater.client.producer.intake.interceptors import ProducerInterceptor
    from headwater.client.producer.intake.partitioners import (
        PartitionQuestion,
        RandomPartitioner,
        RoundRobinPartitioner,
    )
    from headwater.client.producer.intake.serializers import (
        IntegerSerializer,
        JsonSerializer,
        StringSerializer,
    )
    from headwater.client.producer.producer import Producer
    from headwater.client.producer.record import ProducerRecord
    from headwater.client.producer.record_metadata import RecordMetadata
    from headwater.client.settings.typed import AdminSettings, ConsumerSettings, ProducerSettings
    from headwater.client.spool.files.refused_log import RefusedRecord, read_refused
    from headwater.client.tracing.trace_context import TraceContext, current_trace

__version__ = "0.9.0"

_MODULES = {
    "Admin": "client.admin",
    "AdminSettings": "client.settings.typed",
    "AsyncAdmin": "client.admin",
    "AsyncConsumer": "client.consumer.async_consumer",
    "AsyncProducer": "client.producer.async_producer",
    "Consumer": "client.consumer.consumer",
    "ConsumerInterceptor": "client.consumer.listeners",
    "ConsumerRecord": "client.consumer.record",
    "ConsumerSettings": "client.settings.typed",
    "ConsumerThreads": "client.consumer.workers.threads",
    "DeliveryFuture": "client.producer.batches.delivery_future",
    "ErrorCode": "base.errors",
    "FailurePolicy": "client.consumer.workers.failure_policy",
    "GroupIdentity": "client.consumer.membership.membership",
    "IntegerDeserializer": "client.consumer.deserializers",
    "IntegerSerializer": "client.producer.intake.serializers",
    "JsonDeserializer": "client.consumer.deserializers",
    "JsonSerializer": "client.producer.intake.serializers",
    "KafkaError": "base.errors",
    "MemberAssignment": "client.assignors.assignor",
    "MemberSubscription": "client.assignors.assignor",
    "MessageId": "client.message_id",
    "NewTopic": "client.admin",
    "OffsetAndMetadata": "client.consumer.committed.offset_and_metadata",
    "PartitionQuestion": "client.producer.intake.partitioners",
    "PlainAssignor": "client.assignors.assignor",
    "Producer": "client.producer.producer",
    "ProducerInterceptor": "client.producer.intake.interceptors",
    "ProducerRecord": "client.producer.record",
    "ProducerSettings": "client.settings.typed",
    "RandomPartitioner": "client.producer.intake.partitioners",
    "RebalanceListener": "client.consumer.listeners",
    "RebalanceProtocol": "client.assignors.assignor",
    "RecordMetadata": "client.producer.record_metadata",
    "RefusedRecord": "client.spool.files.refused_log",
    "RoundRobinPartitioner": "client.producer.intake.partitioners",
    "SenderId": "client.message_id",
    "StringDeserializer": "client.consumer.deserializers",
    "StringSerializer": "client.producer.intake.serializers",
    "TopicPartition": "base.ids",
    "TraceContext": "client.tracing.trace_context",
    "WorkerPool": "client.consumer.workers.pool",
    "current_trace": "client.tracing.trace_context",
    "read_refused": "client.spool.files.refused_log",
}

__all__ = [
    "Admin",
    "AdminSettings",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "ConsumerSettings",
    "ConsumerThreads",
    "DeliveryFuture",
    "ErrorCode",
    "FailurePolicy",
    "GroupIdentity",
    "IntegerDeserializer",
    "IntegerSerializer",
    "JsonDeserializer",
    "JsonSerializer",
    "KafkaError",
    "MemberAssignment",
    "MemberSubscription",
    "MessageId",
    "NewTopic",
    "OffsetAndMetadata",
    "PartitionQuestion",
    "PlainAssignor",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "ProducerSettings",
    "RandomPartitioner",
    "RebalanceListener",
    "RebalanceProtocol",
    "RecordMetadata",
    "RefusedRecord",
    "RoundRobinPartitioner",
    "SenderId",
    "StringDeserializer",
    "StringSerializer",
    "TopicPartition",
    "TraceContext",
    "WorkerPool",
    "__version__",
    "current_trace",
    "read_refused",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Not for type checkers, which would take any name for one that exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value
