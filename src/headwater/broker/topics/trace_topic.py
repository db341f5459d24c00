"""`__trace`, made when a client that traces first asks for it.

It is no topic of the brokers' own: clients write to it. But it is made as those are, with the
settings that it needs, and also where `auto.create.topics.enable` is off, since nobody asks for it
by mistyping a name.
"""

from __future__ import annotations

import logging
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TRACE_TOPIC
from headwater.broker.context import BrokerContext
from headwater.broker.topics.coordinator_topics import replica_count
from headwater.broker.topics.requests import request_topics
from headwater.cluster.topics.new_topic import NewTopic

_logger = logging.getLogger(__name__)

_WAIT_MS_MAX: Final = 5_000
#: So that what is too old goes soon, however little is written.
_SEGMENT_MS: Final = 21_600_000


async def create_trace_topic(broker: BrokerContext) -> KafkaError | None:
    """Why it cannot be used yet, if so."""
    integer = broker.settings.integer
    try:
        topic = NewTopic(
            TRACE_TOPIC,
            integer("trace.topic.num.partitions"),
            replica_count(broker, "trace.topic.replication.factor"),
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "retention.ms": str(integer("trace.retention.ms")),
                "segment.ms": str(_SEGMENT_MS),
                # What is traced about traces would be traced too.
                "trace.sample": "0.0",
            },
        )
        failure = (await request_topics(broker, [topic], _WAIT_MS_MAX)).get(TRACE_TOPIC)
    except KafkaError as error:
        return error
    if failure is None:
        _logger.info(
            "The topic %s is created (partitions: %d, replicas: %d): a client traces.",
            TRACE_TOPIC,
            topic.partition_count,
            topic.replication_factor,
        )
    elif failure.code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return None
    return failure
