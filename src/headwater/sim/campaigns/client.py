"""The exactly-once campaign with Headwater's own client: `AsyncProducer` and `AsyncConsumer`.

What befalls the broker, the network and the processes is the same as in `exactly_once`,
and so is what must hold in the end. Here the clients are the product, on the simulator's loop: what
is found wrong may be the broker's fault or theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.broker_world import HOST, PORT
from headwater.sim.campaigns.exactly_once import (
    COPIERS,
    READERS,
    SOURCE,
    TARGET,
    ExactlyOnceCampaign,
    Running,
)
from headwater.sim.clients.committed_reader import Visible
from headwater.sim.histories.history import Sent
from headwater.sim.histories.transaction_history import Ending, Transaction

#: Longer than any trouble lasts, so that what is given up was given up wrongly.
_PATIENCE_MS = 10 * 60_000


@dataclass
class ClientMember:
    """A consumer of the group, and if it copies, the names of its producer."""

    consumer: AsyncConsumer
    group_id: str
    instance_id: str | None

    async def leave(self) -> None:
        await self.consumer.close(5.0)


@dataclass
class ClientCopier:
    transactional_id: str
    has_successor: bool = False


class ClientCampaign(ExactlyOnceCampaign):
    #: For tests that plant a bug.
    producer_settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = Random(f"client {seed}")
        # Members of one group speak one protocol.
        self._protocols = {
            group_id: (
                rng.choice(("classic", "classic", "consumer")),
                rng.choice(("range", "roundrobin", "sticky", "cooperative-sticky")),
            )
            for group_id in (COPIERS, READERS)
        }

    # -- clients ---------------------------------------------------------------------------------

    def _environment(self) -> ClientEnvironment:
        return ClientEnvironment(clock=self.world.clock, generator=Random(self.random.random()))

    def _settings(self, name: str) -> dict[str, Any]:
        """What each client has, whatever its kind."""
        return {
            "bootstrap_servers": f"{HOST}:{PORT}",
            "client_id": name,
            "request_timeout_ms": self.random.choice((2_000, 10_000)),
        }

    async def _start_clients(self) -> None:
        await super()._start_clients()
        process, link = self.world.start_client("watcher")
        self._start_task(process.run, self._watch_target(link.name), self._endless)

    async def _watch_target(self, name: str) -> None:
        """Look at what is committed, again and again."""
        consumer = in_environment(AsyncConsumer, self._environment())(
            **self._settings(name),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        consumer.assign(self._numbered(TARGET))
        while True:
            try:
                self.transactions.see(
                    Visible(record.topic_partition, record.offset, record.key, record.value)
                    for record in await consumer.poll(1.0)
                )
            except KafkaError as error:
                self._note(name, error)
            await asyncio.sleep(self.random.random())

    def _start_producer(self, partition: TopicPartition, count: int) -> None:
        process, link = self.world.start_client("producer")
        self._start_task(process.run, self._produce(link.name, partition, count), self._working)

    async def _produce(self, name: str, partition: TopicPartition, record_count: int) -> None:
        history, random = self.world.history, self.random
        async with in_environment(AsyncProducer, self._environment())(
            **self._settings(name),
            delivery_timeout_ms=_PATIENCE_MS,
            max_block_ms=_PATIENCE_MS,
            linger_ms=random.choice((0, 5, 50)),
            batch_size=random.choice((1, 200, 16_384)),
            compression_type=random.choice(("none", "lz4", "zstd")),
            **self.producer_settings,
        ) as producer:
            futures = []
            for number in range(record_count):
                value = history.send(Sent(name, number, partition, is_idempotent=True))
                future = await producer.send(partition.topic, value, partition=partition.partition)
                futures.append((future, value))
                if random.random() < 0.3:
                    await asyncio.sleep(random.random())
            for future, value in futures:
                written = await future
                history.acknowledge(partition, written.offset, [value])

    def _start_member(
        self, group_id: str, transactional_id: str | None, instance_id: str | None = None
    ) -> None:
        process, link = self.world.start_client(transactional_id or "member")
        if instance_id is None and self.random.random() < 0.3:
            instance_id = link.name
        consumer = self._consumer(link.name, group_id, instance_id)
        member = ClientMember(consumer, group_id, instance_id)
        copier = None if transactional_id is None else ClientCopier(transactional_id)
        work = (
            self._read(link.name, member)
            if copier is None
            else self._copy(link.name, member, copier)
        )
        self._start_task(process.run, work, self._endless)
        self._running.append(Running(process, self._endless[-1], member, copier))

    def _consumer(self, name: str, group_id: str, instance_id: str | None) -> AsyncConsumer:
        protocol, assignor = self._protocols[group_id]
        kind = in_environment(AsyncConsumer, self._environment())
        settings = self._settings(name) | {"group_protocol": protocol}
        if protocol == "classic":
            settings |= {
                "partition_assignment_strategy": assignor,
                "session_timeout_ms": self.random.choice((3_000, 6_000)),
                "heartbeat_interval_ms": 500,
            }
        if instance_id is not None:
            settings["group_instance_id"] = instance_id
        return kind(
            **settings,
            group_id=group_id,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=self.random.choice((1, 5, 500)),
            max_poll_interval_ms=self.random.choice((3_500, 300_000)),
        )

    def _take_safe(
        self, consumer: AsyncConsumer, records: list[ConsumerRecord]
    ) -> list[ConsumerRecord]:
        """Those that are acknowledged; a lone broker shows some that a power loss takes back."""
        safe: list[ConsumerRecord] = []
        stopped: set[TopicPartition] = set()
        for record in records:
            partition = record.topic_partition
            if partition in stopped:
                continue
            if record.offset < self.world.history.acknowledged_end(partition):
                safe.append(record)
            elif partition in consumer.assignment():
                stopped.add(partition)
                consumer.seek(partition, record.offset)
        return safe

    async def _read(self, name: str, member: ClientMember) -> None:
        """Read and commit without end, as a new consumer after what cannot pass."""
        while True:
            try:
                await self._read_and_commit(name, member)
            except KafkaError as error:
                self._note(name, error)
            await member.consumer.close(1.0)
            member.consumer = self._consumer(name, member.group_id, member.instance_id)
            await asyncio.sleep(self.random.random())

    async def _read_and_commit(self, name: str, member: ClientMember) -> None:
        consumer = member.consumer
        consumer.subscribe([SOURCE])
        while True:
            records = self._take_safe(consumer, await consumer.poll(1.0))
            for record in records:
                self.groups.deliver(member.group_id, record.topic_partition, record.offset)
            offsets = next_offsets(records)
            if offsets:
                try:
                    await consumer.commit(offsets)
                    self.groups.commit(member.group_id, offsets)
                except KafkaError as error:
                    self._note(name, error)
                    await go_back(consumer)
            await asyncio.sleep(self.random.random() * 0.3)

    async def _copy(self, name: str, member: ClientMember, copier: ClientCopier) -> None:
        """Copy in transactions, as a new client after whatever cannot pass."""
        while not copier.has_successor:
            consumer = member.consumer
            producer = in_environment(AsyncProducer, self._environment())(
                **self._settings(name),
                transactional_id=copier.transactional_id,
                transaction_timeout_ms=self.random.choice((2_000, 10_000)),
                delivery_timeout_ms=_PATIENCE_MS,
                max_block_ms=_PATIENCE_MS,
            )
            consumer.subscribe([SOURCE])
            try:
                await producer.start()
                await producer.init_transactions()
                while not copier.has_successor:
                    records = self._take_safe(consumer, await consumer.poll(1.0))
                    if records and not await self._copy_records(name, consumer, producer, records):
                        await go_back(consumer)
                    await asyncio.sleep(self.random.random() * 0.3)
            except KafkaError as error:
                self._note(name, error)
            await producer.close(0.0)
            await consumer.close(1.0)
            member.consumer = self._consumer(name, member.group_id, member.instance_id)
            await asyncio.sleep(self.random.random())

    async def _copy_records(
        self,
        name: str,
        consumer: AsyncConsumer,
        producer: AsyncProducer,
        records: list[ConsumerRecord],
    ) -> bool:
        """Whether they were copied; raises if this producer can do no more."""
        transaction = self.transactions.begin(name)
        is_commit = self.random.random() > 0.15
        await producer.begin_transaction()
        try:
            await self._write(transaction, producer, records)
            if self.random.random() < 0.1:
                # Long enough for some to be shut out of the group, or to lose the transaction.
                await asyncio.sleep(5.0)
            offsets = next_offsets(records)
            await producer.send_offsets_to_transaction(offsets, consumer.group_identity())
            if is_commit:
                await producer.commit_transaction()
                transaction.ending = Ending.COMMITTED
                self.groups.commit(COPIERS, offsets)
                return True
        except KafkaError as error:
            self._note(name, error)
        await producer.abort_transaction()
        if transaction.ending is Ending.UNKNOWN:
            transaction.ending = Ending.ABORTED
        return False

    async def _write(
        self, transaction: Transaction, producer: AsyncProducer, records: list[ConsumerRecord]
    ) -> None:
        for record in records:
            target = TopicPartition(TARGET, record.partition)
            transaction.values.setdefault(target, []).append(record.value)
        for record in records:
            await producer.send(TARGET, record.value, transaction.name, partition=record.partition)

    def _note(self, name: str, error: KafkaError) -> None:
        self.world.trace.note("client", f"{name} {type(error).__name__}: {error}")


def next_offsets(records: list[ConsumerRecord]) -> dict[TopicPartition, int]:
    return {record.topic_partition: record.offset + 1 for record in records}


async def go_back(consumer: AsyncConsumer) -> None:
    """Let a consumer go on where its group is."""
    for partition, committed in (await consumer.committed(consumer.assignment())).items():
        if partition in consumer.assignment():
            consumer.seek(partition, 0 if committed is None else committed.offset)
