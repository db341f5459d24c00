"""The coordinators' topics, made when somebody first asks for a coordinator.

The settings say how many partitions and replicas they get; their records are compacted, so that a
topic holds what is true now and not all that ever was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.change_limits import within
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.controller import Controller
from headwater.cluster.new_topic import NewTopic

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
    def __init__(self, settings: BrokerSettings, controller: Controller) -> None:
        self._settings = settings
        self._controller = controller

    async def ensure(self, kind: CoordinatorKind) -> int:
        """Make the topic if it is not there; returns how many partitions it has."""
        topic = self._controller.image.topics.get(kind.topic)
        if topic is None:
            await self._create(kind)
            topic = self._controller.image.topics.get(kind.topic)
        if topic is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {kind.topic} is being made."
            )
        return len(topic.partitions)

    async def _create(self, kind: CoordinatorKind) -> None:
        new = self._new_topic(kind)
        try:
            outcomes = await within(_WAIT_MS_MAX, self._controller.create_topics([new]))
        except KafkaError as error:
            raise _not_available(kind, error) from error
        outcome = outcomes[kind.topic]
        if isinstance(outcome, KafkaError) and outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise _not_available(kind, outcome)

    def _new_topic(self, kind: CoordinatorKind) -> NewTopic:
        integer = self._settings.integer
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
        # A development broker stands alone, and could not make the three replicas of the default.
        replicas = min(integer(f"{prefix}.replication.factor"), len(self._controller.image.brokers))
        return NewTopic(kind.topic, integer(f"{prefix}.num.partitions"), replicas, configs=configs)


def _not_available(kind: CoordinatorKind, error: KafkaError) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {kind.topic} cannot be made: {error}"
    )
