"""The coordinators' topics, made when somebody first asks for a coordinator.

The settings say how many partitions and replicas they get; their records are compacted, so that a
topic holds what is true now and not all that ever was.

Until there are as many brokers as it shall have replicas a topic is not made, and clients are told
to come again: a topic that was made while brokers were missing would stay with too few replicas for
good. Brokers on an embedded store are the exception, unless the number of replicas was set on
purpose. They are one development broker, or a few in one process, and the default of three replicas
is no wish of theirs: then the topic gets as many as there are brokers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext
from headwater.broker.settings.rows.cluster import CONNECT
from headwater.broker.topics.requests import request_topics
from headwater.cluster.topics.new_topic import NewTopic

_logger = logging.getLogger(__name__)

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"

#: Clients ask again after a while, so an answer that takes longer is of no use.
_WAIT_MS_MAX: Final = 10_000


class CoordinatorKind(IntEnum):
    """What a coordinator is asked for; the numbers are those of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1

    @property
    def topic(self) -> str:
        return OFFSETS_TOPIC if self is CoordinatorKind.GROUP else TRANSACTIONS_TOPIC


class CoordinatorTopics:
    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker

    async def ensure(self, kind: CoordinatorKind) -> int:
        """Make the topic if it is not there; returns how many partitions it has."""
        topic = self._broker.image.topics.get(kind.topic)
        if topic is None:
            await self._create(kind)
            topic = self._broker.image.topics.get(kind.topic)
        if topic is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {kind.topic} is being made."
            )
        return len(topic.partitions)

    async def _create(self, kind: CoordinatorKind) -> None:
        topic = self._new_topic(kind)
        try:
            failures = await request_topics(self._broker, [topic], _WAIT_MS_MAX)
        except KafkaError as error:
            raise _not_available(kind, error) from error
        failure = failures.get(kind.topic)
        if failure is None:
            _logger.info(
                "The topic %s is created (partitions: %d, replicas: %d): a client asked for a "
                "coordinator.",
                kind.topic,
                topic.partition_count,
                topic.replication_factor,
            )
        if failure is not None and failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise _not_available(kind, failure)

    def _new_topic(self, kind: CoordinatorKind) -> NewTopic:
        integer = self._broker.settings.integer
        if kind is CoordinatorKind.GROUP:
            prefix = "offsets.topic"
            configs: Mapping[str, str] = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(integer("offsets.topic.segment.bytes")),
            }
        else:
            prefix = "transaction.state.log"
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(integer("transaction.state.log.min.isr")),
                "segment.bytes": str(integer("transaction.state.log.segment.bytes")),
            }
        return NewTopic(
            kind.topic,
            integer(f"{prefix}.num.partitions"),
            replica_count(self._broker, f"{prefix}.replication.factor"),
            configs=configs,
        )


def replica_count(broker: BrokerContext, setting: str) -> int:
    """How many replicas a topic of the brokers' own gets."""
    settings = broker.settings
    wanted = settings.integer(setting)
    if settings.is_set(setting) or settings.optional_text(CONNECT) is not None:
        return wanted
    return min(wanted, len(broker.image.brokers))


def _not_available(kind: CoordinatorKind, error: KafkaError) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {kind.topic} cannot be made: {error}"
    )
