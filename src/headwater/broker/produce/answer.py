"""The answer to a produce request: when it may be given, and what it says of each partition.

With acks=all it waits until all that was appended is safe: with the replicas and on the disk, as
far as that is asked for. With acks=0 there is none; an error closes the connection, which is all
that such a producer can notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.peers.current_leaders import CurrentLeaders
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.delayed_produce import (
    AwaitedAppend,
    await_append,
    when_settled,
)
from headwater.storage.errors import InvalidTimestampError
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import encode_response
from headwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
)
from headwater.wire.records import InvalidRecordError

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

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


class ProduceAnswer:
    __slots__ = (
        "_acks",
        "_context",
        "_exchange",
        "_failure",
        "_leaders",
        "_timeout_ms",
        "_waiting",
    )

    def __init__(
        self, exchange: Exchange, context: RequestContext, *, acks: int, timeout_ms: int
    ) -> None:
        self._exchange = exchange
        self._context = context
        self._acks = acks
        self._timeout_ms = timeout_ms
        #: Appends that are not safe yet, with the part of the answer that each decides.
        self._waiting: list[tuple[AwaitedAppend, PartitionProduceResponse]] = []
        #: The first error, for producers who get no answer.
        self._failure: KafkaError | None = None
        self._leaders = CurrentLeaders(context)

    def await_safety(
        self, partition: Partition, end_offset: int, answer: PartitionProduceResponse
    ) -> None:
        """Let the answer wait for the replicas and the disk, as far as this append has to."""
        if partition.is_safe_at_once(end_offset, self._acks):
            return
        append = await_append(partition, end_offset, self._acks)
        if append.error is not None:
            raise append.error
        if not append.is_settled:
            self._waiting.append((append, answer))

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
        # Counted here: to look through every answer of Produce for errors would cost each of them.
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

    def finish(self, response: ProduceResponse) -> None:
        """Answer now, or when the appends are safe."""
        if self._acks == 0:
            self._answer_acks_zero()
        elif not self._waiting:
            self._answer(response)
        else:
            appends = [append for append, _ in self._waiting]
            purgatory = self._context.broker.parked.produce
            when_settled(purgatory, appends, self._timeout_ms, lambda: self._answer_late(response))

    def _answer_late(self, response: ProduceResponse) -> None:
        for append, answer in self._waiting:
            if append.error is not None:
                self.refuse(answer, append.error, append.partition)
        self._answer(response)

    def _answer(self, response: ProduceResponse) -> None:
        context = self._context
        response.node_endpoints = [
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in self._leaders.endpoints()
        ]
        self._exchange.answer(
            encode_response(ApiKey.PRODUCE, context.api_version, context.correlation_id, response)
        )
        context.record_answer()

    def _answer_acks_zero(self) -> None:
        if self._failure is not None:
            self._exchange.disconnect(f"a produce request with acks=0 failed: {self._failure}")
        else:
            self._exchange.answer_nothing()
        self._context.record_answer()
