"""A simulated producer: sends batches to one partition until each of them is acknowledged.

An idempotent one numbers its batches and has some under way at once. When the connection is lost or
an answer does not come, it sends all that are not acknowledged again, in their order, and relies on
the broker to tell repetitions. That remembers the last five of a producer, so while a batch is not
acknowledged, no more than four are sent that follow it, though those may be acknowledged. A leader
that does not know the producer takes any number for its first, so where there are several leaders
the first batch goes alone. One that is not idempotent has a single batch under way, and may leave
it twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import NO_LEADER_EPOCH, PASSING, BrokerLink, Unanswered
from headwater.sim.clock import START_WALL_MS
from headwater.sim.histories.history import History, PropertyViolated, Sent
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headwater.wire.records import NO_PRODUCER_ID, NO_SEQUENCE, Compression, Record, encode_batch

ACKS_ALL = -1
#: As many as a broker remembers of each producer.
UNDER_WAY_MAX = 5
_TRY_AGAIN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


@dataclass
class Batch:
    number: int
    values: list[bytes]
    data: bytes


class ProducingClient:
    def __init__(
        self,
        link: BrokerLink,
        history: History,
        partition: TopicPartition,
        *,
        is_idempotent: bool,
        acks: int = ACKS_ALL,
    ) -> None:
        self._link = link
        self._history = history
        self._partition = partition
        self._is_idempotent = is_idempotent
        self._acks = acks
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = -1
        self._record_count = 0
        self._batch_count = 0
        self._under_way: list[Batch] = []
        self._is_finishing = False
        self._random = link.random
        self._is_known = link.leader_epoch == NO_LEADER_EPOCH
        # Version 13 names topics by id, those before it by name.
        self._version = self._random.choice((13, 12, 9, 7, 3))

    def finish(self) -> None:
        """Send nothing new, and be done when what is under way is acknowledged."""
        self._is_finishing = True

    async def run(self, batch_count: int, *, pace_s_max: float = 0.0) -> None:
        """Send so many batches; returns when all of them are acknowledged."""
        if self._is_idempotent:
            await self._get_producer_id()
        depth = self._random.randint(1, UNDER_WAY_MAX) if self._is_idempotent else 1
        while (batch_count and not self._is_finishing) or self._under_way:
            while (
                batch_count
                and not self._is_finishing
                and self._reach < (depth if self._is_known else 1)
            ):
                self._under_way.append(self._next_batch())
                batch_count -= 1
            try:
                await self._send_all()
            except Unanswered:
                await self._link.pause()
            if pace_s_max:
                await asyncio.sleep(self._random.random() * pace_s_max)
            elif self._random.random() < 0.3:
                await self._link.pause()

    @property
    def _reach(self) -> int:
        """How many batches there are from the oldest one on that is not acknowledged."""
        return self._batch_count - self._under_way[0].number if self._under_way else 0

    async def _get_producer_id(self) -> None:
        while True:
            try:
                answer = await self._link.ask(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
                    InitProducerIdResponse,
                )
            except Unanswered:
                await self._link.pause()
                continue
            if answer.error_code == ErrorCode.NONE:
                self._producer_id = answer.producer_id
                self._producer_epoch = answer.producer_epoch
                return
            if answer.error_code not in PASSING:
                raise PropertyViolated(
                    f"a producer gets an id, not {ErrorCode.from_wire(answer.error_code).name}"
                )
            await self._link.pause()

    def _next_batch(self) -> Batch:
        count = self._random.randint(1, 4)
        first = self._record_count
        self._record_count += count
        values = [
            self._history.send(Sent(self._link.name, number, self._partition, self._is_idempotent))
            for number in range(first, first + count)
        ]
        now_s = asyncio.get_running_loop().time()
        padding = bytes(self._random.choice((0, 10, 300)))
        records = [
            Record(number, START_WALL_MS + int(now_s * 1000), padding, value)
            for number, value in enumerate(values)
        ]
        data = encode_batch(
            records,
            compression=self._random.choice((Compression.NONE, Compression.LZ4)),
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=first if self._is_idempotent else NO_SEQUENCE,
        )
        number = self._batch_count
        self._batch_count += 1
        return Batch(number, values, data)

    async def _send_all(self) -> None:
        batches = list(self._under_way)
        answers = await self._link.ask_all(
            [self._request(batch) for batch in batches], ProduceResponse, version=self._version
        )
        for batch, answer in zip(batches, answers, strict=True):
            result = answer.responses[0].partition_responses[0]
            if result.error_code == ErrorCode.NONE:
                if self._acks == ACKS_ALL:
                    self._history.acknowledge(self._partition, result.base_offset, batch.values)
                self._under_way.remove(batch)
                self._is_known = True
            elif result.error_code in _TRY_AGAIN:
                await self._link.look_again()
            elif not self._follows_a_failure(batch):
                raise PropertyViolated(
                    f"a batch can be written: {self._link.name} got "
                    f"{ErrorCode.from_wire(result.error_code).name} for {batch.values[0]!r} in "
                    f"{self._partition}, {result.error_message}"
                )

    def _follows_a_failure(self, batch: Batch) -> bool:
        """Whether one before it failed too: then it was out of order, and both go again."""
        return self._is_idempotent and self._under_way[0] is not batch

    def _request(self, batch: Batch) -> ProduceRequest:
        data = PartitionProduceData(index=self._partition.partition, records=batch.data)
        topic = TopicProduceData(
            name=self._partition.topic,
            topic_id=self._history.topics[self._partition.topic],
            partition_data=[data],
        )
        return ProduceRequest(
            acks=self._acks, timeout_ms=self._random.choice((500, 5_000)), topic_data=[topic]
        )
