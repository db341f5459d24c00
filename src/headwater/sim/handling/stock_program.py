"""A program with a loop of its own, as docs/retry.md has it for any client, without transactions.

It polls, handles, sends what failed to the retry topic, waits for that, and commits. Where it ends
between the last two, or cannot commit, the record is handled, and may be sent, once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.failures.failed_record import dead_record, origin_of, retry_record
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.handling.chance_handler import ChanceHandler, HopelessError, attempt_of
from headwater.sim.handling.ledger import HandlingLedger


class StockProgram(RebalanceListener):
    def __init__(
        self,
        name: str,
        topics: list[str],
        ledger: HandlingLedger,
        environment: ClientEnvironment,
        consumer_settings: Mapping[str, Any],
        producer_settings: Mapping[str, Any],
        *,
        now_s: Callable[[], float],
    ) -> None:
        self.name = name
        self._topics = topics
        self._ledger = ledger
        self._environment = environment
        self._consumer_settings = consumer_settings
        self._producer_settings = producer_settings
        self._now_s = now_s

    def on_partitions_assigned(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self._ledger.assign(self.name, partitions, self._now_s())

    def on_partitions_revoked(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self._ledger.release(self.name, partitions)

    on_partitions_lost = on_partitions_revoked

    async def run(self) -> None:
        """Without end, with new clients after whatever does not pass."""
        random = Random(self._environment.generator.random())
        handler = ChanceHandler(self.name, self._ledger, random, self._now_s)
        while True:
            consumer = in_environment(AsyncConsumer, self._environment)(**self._consumer_settings)
            producer = in_environment(AsyncProducer, self._environment)(**self._producer_settings)
            try:
                await producer.start()
                consumer.subscribe(self._topics, listener=self)
                while True:
                    for record in await consumer.poll(1.0, 5):
                        await self._one(record, handler, consumer, producer)
            except KafkaError:
                await asyncio.sleep(random.random())
            await producer.close(0.0)
            await consumer.close(1.0)
            self._ledger.ended(self.name)

    async def _one(
        self,
        record: ConsumerRecord,
        handler: ChanceHandler,
        consumer: AsyncConsumer,
        producer: AsyncProducer,
    ) -> None:
        place = (str(origin_of(record)), attempt_of(record.headers))
        is_sent = False
        try:
            await handler(record)
        except Exception as error:
            make = dead_record if isinstance(error, HopelessError) else retry_record
            produced = make(record, error, group=self._ledger.group_id)
            is_sent = True
            # From here on, until the commit is known to be there, an end repeats the record.
            self._ledger.interruptions[place] += 1
            sent = await producer.send(
                produced.topic, produced.value, produced.key, headers=produced.headers
            )
            await sent
        await consumer.commit({record.topic_partition: record.offset + 1})
        if is_sent:
            self._ledger.interruptions[place] -= 1
