"""A produce request on its way through the partitions, until its batches are written.

Most batches are written at once. One whose records must be looked into, or whose transaction begins
in its partition, is written by a task of its own when its turn has come. The answer waits for all
of them, and then for what `produce.answer` waits for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.produce.answer import ProduceAnswer
from headwater.broker.produce.checks import (
    ZSTD_SINCE,
    check_partition_records,
    transactional_batch,
)
from headwater.broker.produce.transaction import ProduceTransaction
from headwater.replication.partition.append_turns import AppendTurn
from headwater.replication.partition.options import ACKS_ALL
from headwater.replication.partition.partition import Partition
from headwater.storage.append.leader import PreparedBatches
from headwater.storage.producers.transaction_verification import TransactionalBatch, Verification
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headwater.wire.records import NO_PRODUCER_ID, Buffer, read_batch_header
from headwater.wire.single_produce import TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

_logger = logging.getLogger(__name__)

#: A client with this id may write to internal topics: it is how Kafka's tools call themselves.
_ADMIN_CLIENT_ID: Final = "__admin_client"
_VALID_ACKS: Final = (0, 1, ACKS_ALL)
#: Of so many producers of a partition the client's id is kept, and so much of it.
_CLIENTS_MAX: Final = 1_000
_CLIENT_ID_LENGTH_MAX: Final = 200


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
        "_answer",
        "_context",
        "_exchange",
        "_header",
        "_request",
        "_transaction",
        "preparing",
    )

    def __init__(
        self,
        exchange: Exchange,
        context: RequestContext,
        request: ProduceRequest,
        answer: ProduceAnswer,
    ) -> None:
        self._exchange = exchange
        self._header = context.header
        self._context = context
        self._request = request
        self._acks = request.acks
        self._answer = answer
        self._transaction: ProduceTransaction | None = None
        #: Appends whose records are being looked into, or whose coordinator is asked; they fill in
        #: their answers themselves.
        self.preparing: list[asyncio.Task[None]] = []

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
                    self._answer.refuse(answer, error, partition, name)
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
        if partition.is_brokers_own and self._header.client_id != _ADMIN_CLIENT_ID:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{partition.topic_partition.topic} is an internal topic.",
            )
        if self._header.api_version >= ZSTD_SINCE and isinstance(data.records, memoryview):
            base_offset = partition.append_plain(data.records, acks=self._acks, now_ms=now_ms)
            if base_offset is not None:
                answer.base_offset = base_offset
                answer.log_start_offset = partition.log.log_start_offset
                self._answer.await_safety(partition, partition.log.log_end_offset, answer)
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
                self._answer.refuse(append.answer, error, partition)

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
                self._answer.refuse(append.answer, error, partition)

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
        if partition.client_ids is not None:
            self._note_client(partition.client_ids, records)
        answer.base_offset = result.base_offset
        answer.log_append_time_ms = result.log_append_time_ms
        answer.log_start_offset = partition.log.log_start_offset
        self._answer.await_safety(partition, result.last_offset + 1, answer)

    def _note_client(self, client_ids: dict[int, str], records: Buffer | PreparedBatches) -> None:
        """A producer's first batch in a partition goes this way: that is when its name is kept."""
        if isinstance(records, PreparedBatches):
            producer_id = records.headers[0].producer_id if records.headers else NO_PRODUCER_ID
        else:
            producer_id = read_batch_header(records).producer_id
        client_id = self._header.client_id
        if producer_id >= 0 and client_id and len(client_ids) < _CLIENTS_MAX:
            client_ids[producer_id] = client_id[:_CLIENT_ID_LENGTH_MAX]

    async def finish_later(self, response: ProduceResponse) -> None:
        """Wait for what is being prepared, each in its turn."""
        try:
            for append in self.preparing:
                await append
        except Exception:
            _logger.exception("a produce request failed")
            self._exchange.disconnect("the broker failed to handle PRODUCE")
        else:
            self._answer.finish(response)
