"""A produce request on its way through the partitions, from its batches to its answer.

Most batches are written at once. One whose records must be looked into, or whose transaction begins
in its partition, is written by a task of its own when its turn has come; the answer waits for all
of them, and then for the replicas and the disk, as far as `acks` asks for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.peers.current_leaders import CurrentLeaders
from headwater.broker.produce.checks import (
    ZSTD_SINCE,
    check_partition_records,
    transactional_batch,
)
from headwater.broker.produce.transaction import ProduceTransaction
from headwater.replication.partition.append_turns import AppendTurn
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.rules import ACKS_ALL
from headwater.replication.waiting.delayed_produce import AwaitedAppend, DelayedProduce
from headwater.storage.append.leader import PreparedBatches
from headwater.storage.errors import InvalidTimestampError
from headwater.storage.producers.transaction_verification import TransactionalBatch, Verification
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import RequestHeader, encode_response
from headwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headwater.wire.records import Buffer, InvalidRecordError
from headwater.wire.single_produce import TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

_logger = logging.getLogger(__name__)

#: A client with this id may write to internal topics: it is how Kafka's tools call themselves.
_ADMIN_CLIENT_ID: Final = "__admin_client"
_VALID_ACKS: Final = (0, 1, ACKS_ALL)
#: What a log finds wrong with records, after which a producer may want to know where it starts.
_VALIDATION_ERRORS: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)


class _Append(NamedTuple):
    """A partition's share of a request, with the part of the answer that it decides."""

    partition: Partition
    records: Buffer
    answer: PartitionProduceResponse
    now_ms: int
    #: Set if it is part of a transaction.
    batch: TransactionalBatch | None


class ProduceAppends:
    """One request on its way through the partitions."""

    __slots__ = (
        "_acks",
        "_context",
        "_exchange",
        "_failure",
        "_header",
        "_leaders",
        "_request",
        "_transaction",
        "_waiting",
        "preparing",
    )

    def __init__(
        self,
        exchange: Exchange,
        header: RequestHeader,
        context: RequestContext,
        request: ProduceRequest,
    ) -> None:
        self._exchange = exchange
        self._header = header
        self._context = context
        self._request = request
        self._acks = request.acks
        self._transaction: ProduceTransaction | None = None
        #: Appends whose records are being looked into, or whose coordinator is asked; they fill in
        #: their answers themselves.
        self.preparing: list[asyncio.Task[None]] = []
        #: Appends that are not safe yet, with the part of the answer that each decides.
        self._waiting: list[tuple[AwaitedAppend, PartitionProduceResponse]] = []
        #: The first error, for producers who get no answer.
        self._failure: KafkaError | None = None
        self._leaders = CurrentLeaders(context)

    def append_all(self) -> ProduceResponse:
        partitions = self._context.broker.partitions
        now_ms = self._context.broker.clock.wall_ms()
        by_id = self._header.api_version >= TOPIC_IDS_SINCE
        topics = []
        for topic in self._request.topic_data:
            answers = []
            for data in topic.partition_data:
                answer = PartitionProduceResponse(index=data.index)
                answers.append(answer)
                partition = None
                name = topic.name
                try:
                    if by_id:
                        name = partitions.topic_name(topic.topic_id)
                    partition = partitions.get(name, data.index)
                    self._start(partition, data, answer, now_ms)
                except KafkaError as error:
                    self.refuse(answer, error, partition, name)
            topics.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        return ProduceResponse(responses=topics)

    def _start(
        self,
        partition: Partition,
        data: PartitionProduceData,
        answer: PartitionProduceResponse,
        now_ms: int,
    ) -> None:
        """Append a partition's share, or begin to prepare it."""
        if self._acks not in _VALID_ACKS:
            raise KafkaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1, and is {self._acks}."
            )
        if partition.is_internal and self._header.client_id != _ADMIN_CLIENT_ID:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{partition.topic_partition.topic} is an internal topic.",
            )
        if self._header.api_version >= ZSTD_SINCE and isinstance(data.records, memoryview):
            base_offset = partition.append_plain(data.records, acks=self._acks, now_ms=now_ms)
            if base_offset is not None:
                answer.base_offset = base_offset
                answer.log_start_offset = partition.log.log_start_offset
                self.await_safety(partition, partition.log.log_end_offset, answer)
                return
        records = check_partition_records(
            data.records, self._header.api_version, self._request.transactional_id
        )
        batch = transactional_batch(records)
        append = _Append(partition, records, answer, now_ms, batch)
        if batch is not None and not self._transaction_of(batch).is_settled(partition, batch):
            self._join_transaction(append, batch)
        elif (prepared := partition.prepare_at_once(records, now_ms)) is not None:
            self._append(append, prepared)
        else:
            self._spawn(self._append_in_turn(append, partition.take_turn()))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.preparing.append(self._context.broker.tasks.spawn(work))

    async def _append_in_turn(
        self, append: _Append, turn: AppendTurn, verification: Verification | None = None
    ) -> None:
        # It starts before the turn comes, and what is wrong with it is told when the turn is there.
        partition = append.partition
        preparation = self._context.broker.tasks.spawn(
            partition.prepare(append.records, append.now_ms)
        )
        async with turn:
            try:
                self._append(append, await preparation, verification)
            except KafkaError as error:
                self.refuse(append.answer, error, partition)

    def _transaction_of(self, batch: TransactionalBatch) -> ProduceTransaction:
        """The request's transaction, which the first batch of it names."""
        if self._transaction is None:
            self._transaction = ProduceTransaction(
                self._context.broker,
                self._request.transactional_id or "",
                batch,
                self._header.api_version,
            )
        self._transaction.check_producer(batch)
        return self._transaction

    def _join_transaction(self, append: _Append, batch: TransactionalBatch) -> None:
        """Take the batch's place now; it is written when the coordinator has agreed."""
        partition = append.partition
        transaction = self._transaction_of(batch)
        verification = None
        if not partition.transaction_turns.is_busy(batch.producer_id):
            verification = transaction.join(partition, batch)
        turn = partition.transaction_turns.take(batch.producer_id)
        self._spawn(self._append_verified(append, batch, transaction, turn, verification))

    async def _append_verified(
        self,
        append: _Append,
        batch: TransactionalBatch,
        transaction: ProduceTransaction,
        turn: AppendTurn,
        verification: Verification | None,
    ) -> None:
        partition = append.partition
        async with turn:
            try:
                if verification is not None:
                    await transaction.wait(partition)
                else:
                    verification = await transaction.verify(partition, batch)
                prepared = partition.prepare_at_once(append.records, append.now_ms)
                if prepared is not None:
                    self._append(append, prepared, verification)
                else:
                    await self._append_in_turn(append, partition.take_turn(), verification)
            except KafkaError as error:
                self.refuse(append.answer, error, partition)

    def _append(
        self,
        append: _Append,
        records: Buffer | PreparedBatches,
        verification: Verification | None = None,
    ) -> None:
        partition, answer = append.partition, append.answer
        if append.batch is not None and self._transaction is not None:
            self._transaction.check(partition, append.batch, verification)
        result = partition.append(records, acks=self._acks, now_ms=append.now_ms)
        answer.base_offset = result.base_offset
        answer.log_append_time_ms = result.log_append_time_ms
        answer.log_start_offset = partition.log.log_start_offset
        self.await_safety(partition, result.last_offset + 1, answer)

    def await_safety(
        self, partition: Partition, end_offset: int, answer: PartitionProduceResponse
    ) -> None:
        """Let the answer wait for the replicas and the disk, as far as this append has to."""
        durably = partition.needs_fsync(self._acks)
        replicated = self._acks == ACKS_ALL
        if durably or (replicated and partition.log.high_watermark < end_offset):
            append = AwaitedAppend(partition, end_offset, durably=durably, replicated=replicated)
            if not append.settle():
                if durably:
                    partition.request_fsync(append.end_offset)
                self._waiting.append((append, answer))
            elif append.error is not None:
                raise append.error

    async def finish_later(self, response: ProduceResponse) -> None:
        """Wait for what is being prepared, each in its turn."""
        try:
            for append in self.preparing:
                await append
        except Exception:
            _logger.exception("a produce request failed")
            self._exchange.disconnect("the broker failed to handle PRODUCE")
        else:
            self.finish(response)

    def finish(self, response: ProduceResponse) -> None:
        """Answer now, or when the appends are safe."""
        if self._acks == 0:
            self._answer_acks_zero()
        elif not self._waiting:
            self._answer(response)
        else:
            operation = DelayedProduce(
                [append for append, _ in self._waiting], lambda: self._answer_late(response)
            )
            keys = [append.partition.topic_partition for append, _ in self._waiting]
            self._context.broker.parked.produce.try_complete_else_park(
                operation, self._request.timeout_ms, keys
            )

    def refuse(
        self,
        answer: PartitionProduceResponse,
        error: KafkaError,
        partition: Partition | None,
        topic: str = "",
    ) -> None:
        """Answer with an error, and whatever helps the producer with it."""
        if self._failure is None:
            self._failure = error
        self._context.record_error(error.code)
        answer.error_code = error.code
        answer.error_message = str(error)
        answer.base_offset = -1
        answer.log_append_time_ms = -1
        if partition is not None and error.code in _VALIDATION_ERRORS:
            answer.log_start_offset = partition.log_start_offset
        if isinstance(error, InvalidRecordError | InvalidTimestampError):
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=number) for number in error.record_numbers
            ]
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = self._leaders.find(topic, answer.index, partition)
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
            )

    def _answer_late(self, response: ProduceResponse) -> None:
        for append, answer in self._waiting:
            if append.error is not None:
                self.refuse(answer, append.error, append.partition)
        self._answer(response)

    def _answer(self, response: ProduceResponse) -> None:
        header = self._header
        response.node_endpoints = [
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in self._leaders.endpoints()
        ]
        self._exchange.answer(
            encode_response(ApiKey.PRODUCE, header.api_version, header.correlation_id, response)
        )
        self._context.record_answer()

    def _answer_acks_zero(self) -> None:
        if self._failure is not None:
            self._exchange.disconnect(f"a produce request with acks=0 failed: {self._failure}")
        else:
            self._exchange.answer_nothing()
        self._context.record_answer()
