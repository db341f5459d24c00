"""Produce (key 0): append record batches to partitions.

Versions served: 3 to 13. ApiVersions shows 0 to 13, see `api_versions`.

    v3   the current batch format; older ones are refused
    v5   the answer has the log start offset
    v7   zstd is allowed
    v8   the answer tells which records of a batch were refused, and why
    v9   flexible
    v10  the answer may name the new leader
    v12  transactions without AddPartitionsToTxn
    v13  topics by id

The batches stay where the connection received them: their header is checked, offset and epoch are
patched in place, and the buffer goes to the file. With acks=0 there is no answer; an error closes
the connection, which is all that such a producer can notice.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.api_handler import ExchangeHandler
from headwater.broker.produce_checks import ZSTD_SINCE, check_partition_records
from headwater.replication.append_turns import AppendTurn
from headwater.replication.delayed_produce import AwaitedAppend, DelayedProduce
from headwater.replication.partition import Partition
from headwater.replication.partition_rules import ACKS_ALL
from headwater.storage.errors import InvalidTimestampError
from headwater.storage.leader_append import PreparedBatches
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import decode
from headwater.wire.frames import RequestHeader, encode_response
from headwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headwater.wire.records import Buffer, InvalidRecordError
from headwater.wire.single_produce import (
    FLEXIBLE_SINCE,
    TOPIC_IDS_SINCE,
    SingleProduce,
    encode_single_answer,
    read_single_produce,
)

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

_logger = logging.getLogger(__name__)

_ANSWERED_ACKS = (1, ACKS_ALL)
_VALID_ACKS = (0, *_ANSWERED_ACKS)
#: What a log finds wrong with records, after which a producer may want to know where it starts.
_VALIDATION_ERRORS = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)


def handle(exchange: Exchange, header: RequestHeader, context: RequestContext) -> None:
    if header.api_version >= FLEXIBLE_SINCE and _handle_single(exchange, header, context):
        return
    request, _ = decode(ProduceRequest, exchange.frame, header.api_version, header.body_position)
    produce = _Produce(exchange, header, context, request)
    response = produce.append_all()
    if produce.preparing:
        context.broker.tasks.spawn(produce.finish_later(response))
    else:
        produce.finish(response)


def _handle_single(exchange: Exchange, header: RequestHeader, context: RequestContext) -> bool:
    """The short way, for one ordinary batch; false, and nothing done, if it is something else."""
    broker = context.broker
    single = read_single_produce(exchange.frame, header.body_position, header.api_version)
    if single is None or single.acks not in _ANSWERED_ACKS:
        return False
    if header.api_version >= TOPIC_IDS_SINCE:
        partition = broker.partitions.find_by_id(single.topic, single.partition)
    else:
        partition = broker.partitions.find(single.topic_name, single.partition)
    if partition is None:
        return False
    acks = single.acks
    failure = None
    try:
        base_offset = partition.append_plain(
            single.records, acks=acks, now_ms=broker.clock.wall_ms()
        )
    except KafkaError as error:
        base_offset, failure = -1, error
    if base_offset is None:
        return False
    log = partition.log
    if (
        failure is not None
        or partition.needs_fsync(acks)
        or (acks == ACKS_ALL and log.high_watermark < log.log_end_offset)
    ):
        _finish_single(exchange, header, context, single, partition, base_offset, failure)
        return True
    exchange.answer(
        (encode_single_answer(header.correlation_id, single, base_offset, log.log_start_offset),)
    )
    context.record_answer()
    return True


def _finish_single(
    exchange: Exchange,
    header: RequestHeader,
    context: RequestContext,
    single: SingleProduce,
    partition: Partition,
    base_offset: int,
    failure: KafkaError | None,
) -> None:
    """What the short way began and did not finish goes on as all others do."""
    request = ProduceRequest(acks=single.acks, timeout_ms=single.timeout_ms)
    produce = _Produce(exchange, header, context, request)
    answer = PartitionProduceResponse(
        index=single.partition,
        base_offset=base_offset,
        log_start_offset=partition.log_start_offset if failure is None else -1,
    )
    try:
        if failure is not None:
            raise failure
        produce.await_safety(partition, partition.log_end_offset, answer)
    except KafkaError as error:
        produce.refuse(answer, error, partition)
    topic = TopicProduceResponse(partition_responses=[answer])
    if header.api_version >= TOPIC_IDS_SINCE:
        topic.topic_id = partition.topic_id
    else:
        topic.name = partition.topic_partition.topic
    produce.finish(ProduceResponse(responses=[topic]))


class _Produce:
    """One request on its way through the partitions."""

    __slots__ = (
        "_acks",
        "_context",
        "_exchange",
        "_failure",
        "_header",
        "_request",
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
        #: Appends whose records are being looked into; they fill in their answers themselves.
        self.preparing: list[asyncio.Task[None]] = []
        #: Appends that are not safe yet, with the part of the answer that each decides.
        self._waiting: list[tuple[AwaitedAppend, PartitionProduceResponse]] = []
        #: The first error, for producers who get no answer.
        self._failure: KafkaError | None = None

    def append_all(self) -> ProduceResponse:
        partitions = self._context.broker.partitions
        now_ms = self._context.broker.clock.wall_ms()
        by_id = self._header.api_version >= 13
        topics = []
        for topic in self._request.topic_data:
            answers = []
            for data in topic.partition_data:
                answer = PartitionProduceResponse(index=data.index)
                answers.append(answer)
                partition = None
                try:
                    name = partitions.topic_name(topic.topic_id) if by_id else topic.name
                    partition = partitions.get(name, data.index)
                    self._start(partition, data, answer, now_ms)
                except KafkaError as error:
                    self.refuse(answer, error, partition)
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
        if partition.must_prepare(records):
            turn = partition.take_turn()
            work = self._append_in_turn(partition, turn, records, answer, now_ms)
            self.preparing.append(self._context.broker.tasks.spawn(work))
        else:
            self._append(partition, records, answer, now_ms)

    async def _append_in_turn(
        self,
        partition: Partition,
        turn: AppendTurn,
        records: Buffer,
        answer: PartitionProduceResponse,
        now_ms: int,
    ) -> None:
        # It starts before the turn comes, and what is wrong with it is told when the turn is there.
        preparation = self._context.broker.tasks.spawn(partition.prepare(records, now_ms))
        async with turn:
            try:
                self._append(partition, await preparation, answer, now_ms)
            except KafkaError as error:
                self.refuse(answer, error, partition)

    def _append(
        self,
        partition: Partition,
        records: Buffer | PreparedBatches,
        answer: PartitionProduceResponse,
        now_ms: int,
    ) -> None:
        result = partition.append(records, acks=self._acks, now_ms=now_ms)
        answer.base_offset = result.base_offset
        answer.log_append_time_ms = result.log_append_time_ms
        answer.log_start_offset = partition.log.log_start_offset
        self.await_safety(partition, result.last_offset + 1, answer)

    def await_safety(
        self, partition: Partition, end_offset: int, answer: PartitionProduceResponse
    ) -> None:
        """Let the answer wait for the replicas and the disk, as far as this append has to."""
        durably = partition.needs_fsync(self._acks)
        if durably or (self._acks == ACKS_ALL and partition.log.high_watermark < end_offset):
            append = AwaitedAppend(partition, end_offset, durably=durably)
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
        self, answer: PartitionProduceResponse, error: KafkaError, partition: Partition | None
    ) -> None:
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
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and partition is not None:
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )

    def _answer_late(self, response: ProduceResponse) -> None:
        for append, answer in self._waiting:
            if append.error is not None:
                self.refuse(answer, append.error, append.partition)
        self._answer(response)

    def _answer(self, response: ProduceResponse) -> None:
        header = self._header
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


API = ExchangeHandler(ApiKey.PRODUCE, handle)
