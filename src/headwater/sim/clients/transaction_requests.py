"""The requests of a transaction, as a simulated producer sends them in either version.

Each is sent until it is answered, always the same: a broker must be able to live with repetitions.
The answer comes as error codes, which the caller judges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.clock import START_WALL_MS
from headwater.sim.histories.history import History
from headwater.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from headwater.wire.records import Record, encode_batch

ACKS_ALL = -1
#: Since then the error TRANSACTION_ABORTABLE exists; before, INVALID_TXN_STATE says the same.
_PRODUCE_ABORTABLE_SINCE = 11
_COMMIT_ABORTABLE_SINCE = 4


class TransactionRequests:
    def __init__(
        self, link: BrokerLink, history: History, transactional_id: str, is_version_2: bool
    ) -> None:
        self._link = link
        self._history = history
        self._transactional_id = transactional_id
        choice = link.random.choice
        # The newest of each are those of version 2.
        self._produce_version = choice((13, 12)) if is_version_2 else choice((11, 9, 7, 3))
        self._commit_version = 5 if is_version_2 else choice((4, 3))
        self._end_version = 5 if is_version_2 else choice((4, 3, 1))

    async def add_partitions(
        self, producer: ProducerIdentity, partitions: Sequence[TopicPartition]
    ) -> list[ErrorCode]:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for topic, number in partitions:
            topics.setdefault(topic, AddPartitionsToTxnTopic(name=topic)).partitions.append(number)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=list(topics.values()),
        )
        answer = await self._link.insist(
            request, AddPartitionsToTxnResponse, _added_errors, version=3
        )
        return _codes(_added_errors(answer))

    async def produce(
        self,
        producer: ProducerIdentity,
        partition: TopicPartition,
        key: bytes,
        values: Sequence[bytes],
        sequence: int,
    ) -> ErrorCode:
        now_ms = START_WALL_MS + int(asyncio.get_running_loop().time() * 1000)
        batch = encode_batch(
            [Record(number, now_ms, key, value) for number, value in enumerate(values)],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        topic = TopicProduceData(
            name=partition.topic,
            topic_id=self._history.topics[partition.topic],
            partition_data=[PartitionProduceData(index=partition.partition, records=batch)],
        )
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=ACKS_ALL,
            timeout_ms=self._link.random.choice((500, 5_000)),
            topic_data=[topic],
        )
        answer = await self._link.insist(
            request, ProduceResponse, _produced_errors, version=self._produce_version
        )
        codes = _codes(_produced_errors(answer))
        return _newest(codes, self._produce_version >= _PRODUCE_ABORTABLE_SINCE)[0]

    async def add_offsets(self, producer: ProducerIdentity, group_id: str) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group_id,
        )
        answer = await self._link.insist(
            request, AddOffsetsToTxnResponse, lambda answer: [answer.error_code], version=3
        )
        return ErrorCode.from_wire(answer.error_code)

    async def commit_offsets(
        self,
        producer: ProducerIdentity,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        offsets: Mapping[TopicPartition, int],
    ) -> list[ErrorCode]:
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (name, number), offset in offsets.items():
            topic = topics.setdefault(name, TxnOffsetCommitRequestTopic(name=name))
            topic.partitions.append(
                TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=group_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=list(topics.values()),
        )
        answer = await self._link.insist(
            request, TxnOffsetCommitResponse, _committed_errors, version=self._commit_version
        )
        codes = _codes(_committed_errors(answer))
        return _newest(codes, self._commit_version >= _COMMIT_ABORTABLE_SINCE)

    async def end(self, producer: ProducerIdentity, *, is_commit: bool) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=is_commit,
        )
        return await self._link.insist(
            request,
            EndTxnResponse,
            lambda answer: [answer.error_code],
            version=self._end_version,
        )


def _codes(errors: Sequence[int]) -> list[ErrorCode]:
    return [ErrorCode.from_wire(code) for code in errors]


def _newest(codes: list[ErrorCode], knows_abortable: bool) -> list[ErrorCode]:
    """Errors as the newest versions name them."""
    if knows_abortable:
        return codes
    old, new = ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE
    return [new if code is old else code for code in codes]


def _added_errors(answer: AddPartitionsToTxnResponse) -> list[int]:
    return [
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]


def _produced_errors(answer: ProduceResponse) -> list[int]:
    return [each.error_code for topic in answer.responses for each in topic.partition_responses]


def _committed_errors(answer: TxnOffsetCommitResponse) -> list[int]:
    return [each.error_code for topic in answer.topics for each in topic.partitions]
