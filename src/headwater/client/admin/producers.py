"""Admin operations on producers: who writes to a partition, and fencing transactional ones off."""

from collections.abc import Collection
from itertools import groupby
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.coordinator_requests import ask_coordinators
from headwater.client.admin.leader_requests import ask_leaders
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned, settle
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.errors import refusal
from headwater.client.given_items import given_partitions
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NO_TRANSACTION: Final = -1


class ProducerDescription(NamedTuple):
    """A producer that wrote to a partition lately; the offset is -1 outside a transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int

    @property
    def is_in_transaction(self) -> bool:
        return self.transaction_start_offset != NO_TRANSACTION


class FencedProducer(NamedTuple):
    """The producer id of a transactional id, and the epoch that no producer has."""

    producer_id: int
    producer_epoch: int


class ProducerOperations(Operations):
    """See `AdminOperations`."""

    async def fence_producers(
        self, transactional_ids: Collection[str], *, raise_errors: bool = True
    ) -> Outcomes[str, FencedProducer]:
        """End what producers with these ids have under way, and let them write no more.

        Their transactions are aborted; new producers with the same ids can begin at once.
        """

        async def fence(broker_id: int, transactional_id: str) -> FencedProducer | KafkaError:
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=int(self.connection.request_timeout_s * 1000),
            )
            response = await self.connection.ask(request, InitProducerIdResponse, broker_id)
            if response.error_code:
                subject = CoordinatorKind.TRANSACTION.subject(transactional_id)
                return refusal(response.error_code, None, subject)
            return FencedProducer(response.producer_id, response.producer_epoch)

        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, FencedProducer]:
            return {key: await fence(broker_id, key) for key in owned}

        outcomes = await ask_coordinators(
            self.connection,
            CoordinatorKind.TRANSACTION,
            transactional_ids,
            ask,
            "Fencing producers",
        )
        return raised_or_returned(outcomes, raise_errors)

    async def describe_producers(
        self, partitions: Collection[TopicPartition], *, broker_id: int | None = None
    ) -> Outcomes[TopicPartition, list[ProducerDescription]]:
        """Who writes to these partitions with a producer id, as their leaders or a broker know."""
        what = "Describing producers"
        partitions = given_partitions(partitions)
        if broker_id is None:
            return await ask_leaders(self.connection, partitions, self._ask, what)
        chosen = broker_id

        async def attempt(
            pending: list[TopicPartition],
        ) -> Outcomes[TopicPartition, list[ProducerDescription]]:
            return await self._ask(chosen, pending)

        return await settle(self.connection, partitions, attempt, what)

    async def _ask(
        self, broker_id: int, partitions: list[TopicPartition]
    ) -> Outcomes[TopicPartition, list[ProducerDescription]]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=[tp.partition for tp in some])
                for topic, some in groupby(sorted(partitions), key=lambda tp: tp.topic)
            ]
        )
        response = await self.connection.ask(request, DescribeProducersResponse, broker_id)
        outcomes: Outcomes[TopicPartition, list[ProducerDescription]] = {}
        for topic in response.topics:
            for result in topic.partitions:
                key = TopicPartition(topic.name, result.partition_index)
                outcomes[key] = (
                    refusal(result.error_code, result.error_message, str(key))
                    if result.error_code
                    else [
                        ProducerDescription(
                            producer.producer_id,
                            producer.producer_epoch,
                            producer.last_sequence,
                            producer.last_timestamp,
                            producer.coordinator_epoch,
                            producer.current_txn_start_offset,
                        )
                        for producer in result.active_producers
                    ]
                )
        return outcomes
