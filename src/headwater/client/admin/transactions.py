"""Admin operations on transactions: list and describe them, and end those that hang.

A transaction hangs where a partition holds it open and its coordinator does not know it any more.
Nothing behind it can be read with read committed, and the log cannot be compacted. `find_hanging`
finds such places, `abort_transaction` ends one of them.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.coordinator_requests import ask_coordinators
from headwater.client.admin.leader_requests import ask_leaders
from headwater.client.admin.outcomes import Outcomes, require_all, settle
from headwater.client.admin.producers import ProducerDescription, ProducerOperations
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.errors import refusal
from headwater.client.given_items import given_items, given_names, given_partitions
from headwater.client.kafka_errors import (
    InvalidRequestError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages import describe_transactions as description_messages
from headwater.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headwater.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

#: `transaction.max.timeout.ms`: an open transaction that is older than this should have ended.
TRANSACTION_TIMEOUT_MS_MAX: Final = 15 * 60 * 1000
_NOT_STARTED: Final = -1
_NO_FILTER: Final = -1
_DURATION_FILTER_SINCE: Final = 1
_PATTERN_SINCE: Final = 2
_PARTITIONS_AT_ONCE: Final = 500


class TransactionListing(NamedTuple):
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """A transactional id; the start is None and there are no partitions outside a transaction."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


class OpenTransaction(NamedTuple):
    """A transaction as one partition holds it open."""

    topic_partition: TopicPartition
    producer: ProducerDescription


class TransactionOperations(ProducerOperations):
    """See `AdminOperations`."""

    async def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        duration_ms_min: int | None = None,
        transactional_id_pattern: str | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all coordinators by name, all unless filters say which."""
        request = ListTransactionsRequest(
            state_filters=given_names(states),
            producer_id_filters=given_items(producer_ids, int),
            duration_filter=_NO_FILTER if duration_ms_min is None else duration_ms_min,
            transactional_id_pattern=transactional_id_pattern,
        )
        version_min = 0
        if duration_ms_min is not None:
            version_min = _DURATION_FILTER_SINCE
        if transactional_id_pattern is not None:
            version_min = _PATTERN_SINCE

        async def attempt(pending: list[int]) -> Outcomes[int, list[TransactionListing]]:
            outcomes: Outcomes[int, list[TransactionListing]] = {}
            for broker_id in pending:
                await self._check_filters(broker_id, version_min)
                response = await self.connection.ask(request, ListTransactionsResponse, broker_id)
                outcomes[broker_id] = _listings(response, broker_id)
            return outcomes

        brokers = list(self.connection.metadata.brokers)
        listed = await settle(self.connection, brokers, attempt, "Listing transactions")
        return sorted(found for some in require_all(listed).values() for found in some)

    async def describe_transactions(
        self, transactional_ids: Collection[str]
    ) -> Outcomes[str, TransactionDescription]:
        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, TransactionDescription]:
            response = await self.connection.ask(
                DescribeTransactionsRequest(transactional_ids=owned),
                DescribeTransactionsResponse,
                broker_id,
            )
            return {
                found.transactional_id: _description(found, broker_id)
                for found in response.transaction_states
            }

        return await ask_coordinators(
            self.connection,
            CoordinatorKind.TRANSACTION,
            transactional_ids,
            ask,
            "Describing transactions",
        )

    async def abort_transaction(
        self,
        topic_partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """End a transaction in one partition without its coordinator; for one that hangs.

        The coordinator epoch is that of the producer's last transaction there. It is -1 if this is
        its first; then 0 is sent, which no coordinator is below.
        """

        async def ask_leader(
            leader_id: int, partitions: list[TopicPartition]
        ) -> Outcomes[TopicPartition, None]:
            marker = WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[
                    WritableTxnMarkerTopic(
                        name=topic_partition.topic, partition_indexes=[topic_partition.partition]
                    )
                ],
                coordinator_epoch=max(coordinator_epoch, 0),
            )
            response = await self.connection.ask(
                WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, leader_id
            )
            codes = [
                result.error_code
                for written in response.markers
                for topic in written.topics
                for result in topic.partitions
            ]
            if not codes:
                return {}
            return {
                topic_partition: refusal(codes[0], None, str(topic_partition)) if codes[0] else None
            }

        require_all(
            await ask_leaders(
                self.connection, [topic_partition], ask_leader, "Aborting the transaction"
            )
        )

    async def find_hanging(
        self,
        partitions: Collection[TopicPartition],
        *,
        now_ms: int,
        timeout_ms_max: int = TRANSACTION_TIMEOUT_MS_MAX,
        broker_id: int | None = None,
    ) -> list[OpenTransaction]:
        """Transactions that these partitions hold open and their coordinators do not.

        Only those are looked at whose producer has been silent for longer than a transaction may
        take: until then a coordinator may just be on its way to end them.
        """
        wanted = sorted(given_partitions(partitions))
        candidates: list[OpenTransaction] = []
        for start in range(0, len(wanted), _PARTITIONS_AT_ONCE):
            some = wanted[start : start + _PARTITIONS_AT_ONCE]
            described = require_all(await self.describe_producers(some, broker_id=broker_id))
            candidates += (
                OpenTransaction(topic_partition, producer)
                for topic_partition, producers in described.items()
                for producer in producers
                if producer.is_in_transaction
                and now_ms - producer.last_timestamp_ms > timeout_ms_max
            )
        if not candidates:
            return []
        owned = await self._owned_partitions({found.producer.producer_id for found in candidates})
        return [
            found
            for found in candidates
            if found.topic_partition not in owned.get(found.producer.producer_id, ())
        ]

    async def _owned_partitions(
        self, producer_ids: set[int]
    ) -> dict[int, tuple[TopicPartition, ...]]:
        """The partitions in which coordinators will end the transactions of these producers."""
        listed = await self.list_transactions(producer_ids=producer_ids)
        described = await self.describe_transactions([found.transactional_id for found in listed])
        owned: dict[int, tuple[TopicPartition, ...]] = {}
        for found in listed:
            outcome = described[found.transactional_id]
            if not isinstance(outcome, KafkaError):
                owned[found.producer_id] = outcome.partitions
            elif outcome.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise outcome
        return owned

    async def _check_filters(self, broker_id: int, version_min: int) -> None:
        channel = await self.connection.channel(broker_id)
        versions = channel.versions.get(ApiKey.LIST_TRANSACTIONS)
        if versions is not None and versions.highest < version_min:
            raise UnsupportedVersionError(
                f"Broker {broker_id} is too old for these filters of transactions."
            )


def _listings(
    response: ListTransactionsResponse, broker_id: int
) -> list[TransactionListing] | KafkaError:
    if response.error_code:
        return refusal(response.error_code, None, f"Broker {broker_id}")
    if response.unknown_state_filters:
        unknown = ", ".join(map(repr, response.unknown_state_filters))
        return InvalidRequestError(f"There is no state of transactions called {unknown}.")
    return [
        TransactionListing(
            found.transactional_id, broker_id, found.producer_id, found.transaction_state
        )
        for found in response.transaction_states
    ]


def _description(
    found: description_messages.TransactionState, broker_id: int
) -> TransactionDescription | KafkaError:
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return TransactionalIdNotFoundError(
            f"There is no transactional id {found.transactional_id!r}."
        )
    if found.error_code:
        return refusal(
            found.error_code, None, CoordinatorKind.TRANSACTION.subject(found.transactional_id)
        )
    start_ms = found.transaction_start_time_ms
    return TransactionDescription(
        transactional_id=found.transactional_id,
        coordinator_id=broker_id,
        state=found.transaction_state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        start_ms=None if start_ms == _NOT_STARTED else start_ms,
        partitions=tuple(
            sorted(
                TopicPartition(topic.topic, number)
                for topic in found.topics
                for number in topic.partitions
            )
        ),
    )
