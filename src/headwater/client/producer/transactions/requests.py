"""The requests that a producer sends to coordinators, and where the errors are in their answers.

With `transaction.version` 2 of the cluster (KIP-890) a partition joins a transaction with the first
batch that is written to it, a group with the offsets, and the answer to EndTxn brings a new epoch;
with version 1 the producer announces both, and keeps its epoch. The version is told by the versions
of the requests, which is why they are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.errors import refusal
from headwater.client.machines.ask import CoordinatorOf, Target
from headwater.client.producer.idempotence.identity import NO_IDENTITY, ProducerIdentity
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headwater.wire.messages.api_versions import ApiVersionsResponse
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headwater.wire.schema import Message

#: A plain producer has no transactions that could time out.
NO_TIMEOUT_MS: Final = 2**31 - 1
_TWO_PHASE_SINCE: Final = 6
_FEATURE: Final = "transaction.version"
#: The last versions that mean the first version of the protocol.
PRODUCE_VERSION_1_MAX: Final = 11
_END_VERSION_1_MAX: Final = 4
_OFFSETS_VERSION_1_MAX: Final = 4
#: Later versions name topics by ids, and a producer need not know those of what a consumer reads.
_OFFSETS_BY_NAME_MAX: Final = 5
#: Later versions are for brokers, which ask for many producers at once.
_ADD_PARTITIONS_MAX: Final = 3

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(slots=True, frozen=True)
class Question:
    """A request, whom to ask, and what is wrong with an answer: nothing, or one error."""

    request: Message
    target: Target
    error_of: Callable[[Any], KafkaError | None]
    version_max: int | None = None


def uses_version_2(api_versions: ApiVersionsResponse) -> bool:
    """Whether the cluster has agreed on the second version of the transaction protocol."""
    return any(
        feature.name == _FEATURE and feature.max_version_level >= 2
        for feature in api_versions.finalized_features
    )


def offers_two_phase(api_versions: ApiVersionsResponse) -> bool:
    return any(
        version.api_key == ApiKey.INIT_PRODUCER_ID and version.max_version >= _TWO_PHASE_SINCE
        for version in api_versions.api_keys
    )


class TransactionRequests:
    """Makes the questions of one producer."""

    def __init__(
        self, transactional_id: str | None, *, timeout_ms: int, is_two_phase: bool
    ) -> None:
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._is_two_phase = is_two_phase
        self.coordinator: CoordinatorOf | None = None
        if transactional_id is not None:
            self.coordinator = CoordinatorOf(CoordinatorKind.TRANSACTION, transactional_id)

    def initialize(
        self, identity: ProducerIdentity = NO_IDENTITY, *, keep_prepared: bool = False
    ) -> Question:
        """Ask for a producer id, or for the next epoch of the one there is."""
        is_plain = self._transactional_id is None
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            # Of no importance in a two-phase commit, whose transactions have no timeout.
            transaction_timeout_ms=NO_TIMEOUT_MS if is_plain else self._timeout_ms,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            enable2_pc=self._is_two_phase,
            keep_prepared_txn=keep_prepared,
        )
        version_max = None if self._is_two_phase else _TWO_PHASE_SINCE - 1
        return Question(request, self.coordinator, self._error_of, version_max)

    def add_partitions(
        self, identity: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> Question:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=[each.partition for each in group])
                for name, group in groupby(sorted(partitions), lambda each: each.topic)
            ],
        )
        return Question(request, self.coordinator, _error_of_partitions, _ADD_PARTITIONS_MAX)

    def add_offsets(self, identity: ProducerIdentity, group_id: str) -> Question:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=group_id,
        )
        return Question(request, self.coordinator, self._error_of)

    def commit_offsets(
        self,
        identity: ProducerIdentity,
        offsets: Offsets,
        group: GroupIdentity,
        *,
        is_version_2: bool,
    ) -> Question:
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id or "",
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id_or_member_epoch=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name, partitions=[_offset_of(each, offsets[each]) for each in partitions]
                )
                for name, partitions in groupby(sorted(offsets), lambda each: each.topic)
            ],
        )
        return Question(
            request,
            CoordinatorOf(CoordinatorKind.GROUP, group.group_id),
            _error_of_offsets,
            _OFFSETS_BY_NAME_MAX if is_version_2 else _OFFSETS_VERSION_1_MAX,
        )

    def end(self, identity: ProducerIdentity, *, is_commit: bool, is_version_2: bool) -> Question:
        request = EndTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=is_commit,
        )
        version_max = None if is_version_2 else _END_VERSION_1_MAX
        return Question(request, self.coordinator, self._error_of, version_max)

    def _error_of(self, answer: Any) -> KafkaError | None:
        subject = "The producer's id" if self.coordinator is None else str(self.coordinator)
        return refusal(answer.error_code, None, subject) if answer.error_code else None


def _offset_of(
    topic_partition: TopicPartition, offset: OffsetAndMetadata
) -> TxnOffsetCommitRequestPartition:
    return TxnOffsetCommitRequestPartition(
        partition_index=topic_partition.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def _error_of_partitions(answer: Any) -> KafkaError | None:
    """One partition's error stands for all: the coordinator adds all of them or none."""
    return _first_error(
        (result.partition_error_code, f"Partition {topic.name}-{result.partition_index}")
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    )


def _error_of_offsets(answer: Any) -> KafkaError | None:
    """A part of the offsets may be committed already; to commit it again does no harm."""
    return _first_error(
        (partition.error_code, f"The offset of {topic.name}-{partition.partition_index}")
        for topic in answer.topics
        for partition in topic.partitions
    )


def _first_error(outcomes: Iterable[tuple[int, str]]) -> KafkaError | None:
    """The error that decides: one that cannot pass before one that can."""
    errors = [refusal(code, None, subject) for code, subject in outcomes if code]
    # What was not tried because of another one's error says nothing by itself.
    errors.sort(
        key=lambda error: (error.code is ErrorCode.OPERATION_NOT_ATTEMPTED, error.retriable)
    )
    return errors[0] if errors else None
