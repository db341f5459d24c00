"""The coordinator of one transactional id and one group, played, in either protocol version.

It keeps the rules of Kafka's: who comes with an old epoch is fenced, a request that comes again is
answered again, an end that does not fit what is open is refused.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.support.fakes.partition import FakePartition

PRODUCER_ID = 4000


class Phase(Enum):
    EMPTY = "empty"
    ONGOING = "ongoing"
    COMMITTED = "committed"
    ABORTED = "aborted"


class FakeCoordinator:
    def __init__(
        self, partitions: dict[TopicPartition, FakePartition], *, is_version_2: bool
    ) -> None:
        self.is_version_2 = is_version_2
        self.epoch = -1
        self.phase = Phase.EMPTY
        self.committed_offsets: dict[TopicPartition, int] = {}
        #: How many transactions came to each end.
        self.commit_count = 0
        self._previous_epoch = -1
        self._partitions = partitions
        self._members: set[TopicPartition] = set()
        self._pending_offsets: dict[TopicPartition, int] = {}
        self._has_group = False
        self._plain_id = 0

    def answer(self, request: Any) -> Any:
        match request:
            case InitProducerIdRequest():
                return self._initialize(request)
            case AddPartitionsToTxnRequest():
                return self._add_partitions(request)
            case AddOffsetsToTxnRequest():
                code = self._check(request.producer_epoch)
                if not code:
                    self._has_group = True
                    self.phase = Phase.ONGOING
                return AddOffsetsToTxnResponse(error_code=code)
            case TxnOffsetCommitRequest():
                return self._commit_offsets(request)
            case EndTxnRequest():
                code = self._end(request.producer_epoch, is_commit=request.committed)
                if code or not self.is_version_2:
                    return EndTxnResponse(error_code=code)
                return EndTxnResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)
        raise AssertionError(f"nobody plays {type(request).__name__}")

    def refusal(self, request: Any, code: ErrorCode) -> Any:
        """The answer that says no, wherever it has its error codes."""
        match request:
            case AddPartitionsToTxnRequest():
                return self._partitions_answer(request, code)
            case TxnOffsetCommitRequest():
                return self._offsets_answer(request, code)
            case InitProducerIdRequest():
                return InitProducerIdResponse(error_code=code)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=code)
        return EndTxnResponse(error_code=code)

    def admit(self, topic_partition: TopicPartition, epoch: int, *, joins: bool) -> ErrorCode:
        """A leader asks whether a batch of this epoch belongs to the open transaction."""
        if epoch != self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if joins:
            self._members.add(topic_partition)
            self.phase = Phase.ONGOING
        is_member = self.phase is Phase.ONGOING and topic_partition in self._members
        return ErrorCode.NONE if is_member else ErrorCode.INVALID_TXN_STATE

    def _initialize(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        if request.transactional_id is None:
            self._plain_id += 1
            return InitProducerIdResponse(producer_id=self._plain_id, producer_epoch=0)
        expected = request.producer_epoch
        if expected not in (-1, self.epoch, self._previous_epoch):
            return InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if expected != -1 and expected == self._previous_epoch:
            return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)
        if self.phase is Phase.ONGOING:
            self.epoch += 1
            self._finish(is_commit=False)
            return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
        self._previous_epoch = self.epoch if expected != -1 else -1
        self.epoch += 1
        self.phase = Phase.EMPTY
        return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)

    def _check(self, epoch: int) -> ErrorCode:
        return ErrorCode.NONE if epoch == self.epoch else ErrorCode.PRODUCER_FENCED

    def _add_partitions(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        code = self._check(request.v3_and_below_producer_epoch)
        if not code:
            self.phase = Phase.ONGOING
            for topic in request.v3_and_below_topics:
                self._members.update(TopicPartition(topic.name, n) for n in topic.partitions)
        return self._partitions_answer(request, code)

    def _partitions_answer(
        self, request: AddPartitionsToTxnRequest, code: ErrorCode
    ) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=number, partition_error_code=code
                        )
                        for number in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def _commit_offsets(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        code = self._check(request.producer_epoch)
        if not code and self.is_version_2:
            self._has_group = True
            self.phase = Phase.ONGOING
        if not code and not self._has_group:
            code = ErrorCode.INVALID_TXN_STATE
        if not code:
            for topic in request.topics:
                for each in topic.partitions:
                    place = TopicPartition(topic.name, each.partition_index)
                    self._pending_offsets[place] = each.committed_offset
        return self._offsets_answer(request, code)

    def _offsets_answer(
        self, request: TxnOffsetCommitRequest, code: ErrorCode
    ) -> TxnOffsetCommitResponse:
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _end(self, epoch: int, *, is_commit: bool) -> ErrorCode:
        wanted = Phase.COMMITTED if is_commit else Phase.ABORTED
        if self.is_version_2:
            if epoch == self.epoch - 1 and epoch == self._previous_epoch and self.phase is wanted:
                return ErrorCode.NONE
            if epoch != self.epoch:
                return ErrorCode.PRODUCER_FENCED
            if self.phase is not Phase.ONGOING and is_commit:
                return ErrorCode.INVALID_TXN_STATE
            self._previous_epoch = self.epoch
            self.epoch += 1
            self._finish(is_commit=is_commit)
            return ErrorCode.NONE
        if epoch != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        if self.phase is wanted:
            return ErrorCode.NONE
        if self.phase is not Phase.ONGOING:
            return ErrorCode.INVALID_TXN_STATE
        self._finish(is_commit=is_commit)
        return ErrorCode.NONE

    def _finish(self, *, is_commit: bool) -> None:
        for member in self._members:
            self._partitions[member].end_transaction(PRODUCER_ID, self.epoch, is_commit=is_commit)
        if is_commit:
            self.committed_offsets.update(self._pending_offsets)
            self.commit_count += 1
        self.phase = Phase.COMMITTED if is_commit else Phase.ABORTED
        self._members.clear()
        self._pending_offsets.clear()
        self._has_group = False
