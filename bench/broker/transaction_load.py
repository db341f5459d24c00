"""Transactions at the level of the protocol, of many producers at once.

Each producer has a connection and a transactional id, and runs small transactions one after the
other as transaction version 2 has it: a produce request, which adds its partition to the
transaction, and the end of it, which gives the producer its next epoch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.broker.asyncio_client import AsyncioClient
from bench.broker.raw_client import ServerRefused
from bench.broker.request_load import LoadCount
from headwater.base.errors import ErrorCode
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.records import Record, encode_batch

_TRANSACTION_KEY_TYPE = 1
_PRODUCE_VERSION = 12
_RETRY_S = 0.001
_PAYLOAD = b"x" * 100
#: What comes to pass: the server still ends the transaction before, or looks for its coordinator.
_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)


def run_transactions(
    port: int, topic: str, transactional_ids: list[str], seconds: float
) -> LoadCount:
    """Keep all producers busy for a while; `topic` needs a partition for each of them."""
    return asyncio.run(_run_transactions(port, topic, transactional_ids, seconds))


async def _run_transactions(
    port: int, topic: str, transactional_ids: list[str], seconds: float
) -> LoadCount:
    producers = [
        _Producer(await AsyncioClient.connect(port), transactional_id, topic, partition)
        for partition, transactional_id in enumerate(transactional_ids)
    ]
    try:
        for producer in producers:
            await producer.begin()
            await producer.transact()
        start = time.perf_counter()
        counts = await asyncio.gather(*(each.run(start + seconds) for each in producers))
        taken_s = time.perf_counter() - start
    finally:
        for producer in producers:
            await producer.client.close()
    return LoadCount(sum(counts), taken_s, sum(counts) + len(producers))


class _Producer:
    def __init__(
        self, client: AsyncioClient, transactional_id: str, topic: str, partition: int
    ) -> None:
        self.client = client
        self._transactional_id = transactional_id
        self._topic = topic
        self._partition = partition
        self._producer_id = -1
        self._epoch = -1

    async def begin(self) -> None:
        """Find the coordinator and become somebody."""
        key = self._transactional_id
        find = FindCoordinatorRequest(key_type=_TRANSACTION_KEY_TYPE, coordinator_keys=[key])
        await _insist(
            lambda: self.client.ask(find), lambda answer: answer.coordinators[0].error_code
        )
        init = InitProducerIdRequest(transactional_id=key, transaction_timeout_ms=60_000)
        answer = await _insist(lambda: self.client.ask(init), lambda answer: answer.error_code)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    async def run(self, deadline_s: float) -> int:
        """How many transactions were run; none is begun when the time is up."""
        count = 0
        while time.perf_counter() < deadline_s:
            await self.transact()
            count += 1
        return count

    async def transact(self) -> None:
        batch = encode_batch(
            [Record(0, int(time.time() * 1000), None, _PAYLOAD)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            # Every transaction has an epoch of its own, and numbers start anew with it.
            base_sequence=0,
            transactional=True,
        )
        data = PartitionProduceData(index=self._partition, records=batch)
        produce = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name=self._topic, partition_data=[data])],
        )
        await _insist(
            lambda: self.client.ask(produce, _PRODUCE_VERSION),
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )
        end = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=True,
        )
        ended = await _insist(lambda: self.client.ask(end), lambda answer: answer.error_code)
        self._producer_id, self._epoch = ended.producer_id, ended.producer_epoch


async def _insist(ask: Callable[[], Awaitable[Any]], error_of: Callable[[Any], int]) -> Any:
    while True:
        answer = await ask()
        code = error_of(answer)
        if code == ErrorCode.NONE:
            return answer
        if code not in _AGAIN:
            raise ServerRefused(f"a transaction got {ErrorCode.from_wire(code).name}")
        await asyncio.sleep(_RETRY_S)
