"""`__audit`, made when a broker first has something to publish there."""

from __future__ import annotations

import logging
from typing import Final

from headwater.audit.rows import AUDIT_TOPIC
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext
from headwater.broker.topics.coordinator_topics import replica_count
from headwater.broker.topics.requests import request_topics
from headwater.cluster.topics.new_topic import NewTopic

_logger = logging.getLogger(__name__)

_WAIT_MS_MAX: Final = 10_000
#: Small, so that what is too old goes, and loading is quick.
_SEGMENT_BYTES: Final = 16 << 20


async def ensure_audit_topic(broker: BrokerContext) -> int:
    """How many partitions it has; it is made if it is not there. Raises `KafkaError`."""
    topic = broker.image.topics.get(AUDIT_TOPIC)
    if topic is None:
        await _create(broker)
        topic = broker.image.topics.get(AUDIT_TOPIC)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {AUDIT_TOPIC} is being made."
        )
    return len(topic.partitions)


async def _create(broker: BrokerContext) -> None:
    integer = broker.settings.integer
    topic = NewTopic(
        AUDIT_TOPIC,
        integer("audit.topic.num.partitions"),
        replica_count(broker, "audit.topic.replication.factor"),
        configs={
            "cleanup.policy": "compact,delete",
            "compression.type": "producer",
            "retention.ms": str(integer("audit.retention.ms")),
            "segment.bytes": str(_SEGMENT_BYTES),
        },
    )
    failures = await request_topics(broker, [topic], _WAIT_MS_MAX)
    failure = failures.get(AUDIT_TOPIC)
    if failure is None:
        _logger.info(
            "The topic %s is created (partitions: %d, replicas: %d): there is something to tell.",
            AUDIT_TOPIC,
            topic.partition_count,
            topic.replication_factor,
        )
    elif failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise failure
