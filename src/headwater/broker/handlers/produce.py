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

from typing import TYPE_CHECKING

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.api_handler import ExchangeHandler
from headwater.broker.produce_checks import check_partition_records
from headwater.replication.delayed_produce import AwaitedAppend, DelayedProduce
from headwater.replication.partition import ACKS_ALL, Partition
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
from headwater.wire.records import InvalidRecordError

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

_VALID_ACKS = (0, 1, ACKS_ALL)


def handle(exchange: Exchange, header: RequestHeader, context: RequestContext) -> None:
    request, _ = decode(ProduceRequest, exchange.frame, header.api_version, header.body_position)
    produce = _Produce(exchange, header, context, request.acks)
    response = produce.append_all(request)
    waiting = produce.waiting
    if request.acks == 0:
        produce.answer_acks_zero()
    elif not waiting:
        produce.answer(response)
    else:
        operation = DelayedProduce(
            [append for append, _ in waiting], lambda: produce.answer_late(response)
        )
        keys = [append.partition.topic_partition for append, _ in waiting]
        context.broker.parked.produce.try_complete_else_park(operation, request.timeout_ms, keys)


class _Produce:
    """One request on its way through the partitions."""

    __slots__ = ("_acks", "_context", "_exchange", "_header", "failure", "waiting")

    def __init__(
        self, exchange: Exchange, header: RequestHeader, context: RequestContext, acks: int
    ) -> None:
        self._exchange = exchange
        self._header = header
        self._context = context
        self._acks = acks
        #: Appends that are not safe yet, with the part of the answer that each decides.
        self.waiting: list[tuple[AwaitedAppend, PartitionProduceResponse]] = []
        #: The first error, for producers who get no answer.
        self.failure: KafkaError | None = None

    def append_all(self, request: ProduceRequest) -> ProduceResponse:
        partitions = self._context.broker.partitions
        now_ms = self._context.broker.clock.wall_ms()
        by_id = self._header.api_version >= 13
        topics = []
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                partition = None
                try:
                    name = partitions.topic_name(topic.topic_id) if by_id else topic.name
                    partition = partitions.get(name, data.index)
                    answers.append(self._append(partition, data, now_ms))
                except KafkaError as error:
                    answers.append(self._refuse(data.index, error, partition))
            topics.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        return ProduceResponse(responses=topics)

    def _append(
        self, partition: Partition, data: PartitionProduceData, now_ms: int
    ) -> PartitionProduceResponse:
        acks = self._acks
        if acks not in _VALID_ACKS:
            raise KafkaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1, and is {acks}."
            )
        records = check_partition_records(data.records, self._header.api_version)
        result = partition.append(records, acks=acks, now_ms=now_ms)
        answer = PartitionProduceResponse(
            index=data.index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=partition.log.log_start_offset,
        )
        durably = partition.needs_fsync(acks)
        if durably or acks == ACKS_ALL:
            append = AwaitedAppend(partition, result.last_offset + 1, durably=durably)
            if not append.settle():
                if durably:
                    partition.request_fsync(append.end_offset)
                self.waiting.append((append, answer))
            elif append.error is not None:
                raise append.error
        return answer

    def _refuse(
        self, index: int, error: KafkaError, partition: Partition | None
    ) -> PartitionProduceResponse:
        if self.failure is None:
            self.failure = error
        self._context.record_error(error.code)
        answer = PartitionProduceResponse(
            index=index, error_code=error.code, base_offset=-1, error_message=str(error)
        )
        if isinstance(error, InvalidRecordError):
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=number) for number in error.record_numbers
            ]
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and partition is not None:
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
        return answer

    def answer_late(self, response: ProduceResponse) -> None:
        for append, answer in self.waiting:
            if append.error is not None:
                self._context.record_error(append.error.code)
                answer.error_code = append.error.code
                answer.error_message = str(append.error)
                answer.base_offset = -1
        self.answer(response)

    def answer(self, response: ProduceResponse) -> None:
        header = self._header
        self._exchange.answer(
            encode_response(ApiKey.PRODUCE, header.api_version, header.correlation_id, response)
        )
        self._context.record_answer()

    def answer_acks_zero(self) -> None:
        if self.failure is not None:
            self._exchange.disconnect(f"a produce request with acks=0 failed: {self.failure}")
        else:
            self._exchange.answer_nothing()
        self._context.record_answer()


API = ExchangeHandler(ApiKey.PRODUCE, handle)
