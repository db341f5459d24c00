"""Simulated programs that send delayed messages, with Headwater's own producer, and cancel some.

A message asks for a delay or a time, or for nothing; a few expire, some have an id of the sender's.
A cancellation is a record like any other: whether it finds its message the sender is not told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.histories.delay_history import AskedMessage, DelayHistory
from headwater.sim.histories.history import History
from headwater.sim.histories.transaction_history import Ending

SENDER_IDS = (b"", b"", b"", b"a", b"b", b"c")
Headers = list[tuple[str, bytes]]
MakeProducer = Callable[[], AsyncProducer]


class DelayWriter:
    """Of one process. `delays_ms` are what its messages ask for."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        history: History,
        delays: DelayHistory,
        random: Random,
        delays_ms: tuple[int, ...],
    ) -> None:
        self.name = name
        self._clock = clock
        self._history = history
        self._delays = delays
        self._random = random
        self._delays_ms = delays_ms
        self._count = 0
        self._is_finishing = False

    def finish(self) -> None:
        """Send nothing new, and be done when what is under way is acknowledged."""
        self._is_finishing = True

    # -- messages --------------------------------------------------------------------------------

    def _value(self) -> bytes:
        self._count += 1
        return f"{self.name}/{self._count}".encode()

    def _message(self, partition: TopicPartition) -> tuple[AskedMessage, Headers]:
        random, now_ms = self._random, self._clock.wall_ms()
        message = AskedMessage(self._value(), partition, None)
        headers: Headers = [("mine", b"1")]
        if random.random() < 0.85:
            delay_ms = int(random.choice(self._delays_ms) * random.random())
            message.due_ms = now_ms + delay_ms
            if random.random() < 0.5:
                headers.append(("headwater-delay", b"%dms" % delay_ms))
            else:
                message.due_ms += random.choice((-60_000, 0, 0))
                headers.append(("headwater-deliver-at", b"%d" % message.due_ms))
            message.sender_id = random.choice(SENDER_IDS)
            if message.sender_id:
                headers.append(("headwater-delay-id", message.sender_id))
            if random.random() < 0.1:
                message.expires_ms = now_ms + int(random.choice(self._delays_ms) * random.random())
                headers.append(("headwater-expire-at", b"%d" % message.expires_ms))
        self._delays.asked[message.value] = message
        return message, headers

    def _cancellation(self, partition: TopicPartition) -> tuple[bytes, Headers] | None:
        """A record that cancels some message of the partition, or all of an id."""
        value, headers = self._value(), [("headwater-delay", b"cancel")]
        known = [
            each
            for each in self._delays.asked.values()
            if each.partition == partition and each.offset is not None
        ]
        if not known:
            return None
        message = self._random.choice(known[-12:])
        if message.sender_id and self._random.random() < 0.5:
            self._delays.cancelled_ids.add((partition, message.sender_id))
            headers.append(("headwater-delay-id", message.sender_id))
        else:
            message.may_be_cancelled = True
            headers.append(("headwater-delayed-offset", b"%s@%d" % (b"x-0", message.offset or 0)))
        self._delays.changes.add(value)
        return value, headers

    async def _send_some(
        self, producer: AsyncProducer, partition: TopicPartition, ending: Ending | None
    ) -> list[AskedMessage]:
        """Send a few records; returns when they are acknowledged, in a transaction or not."""
        under_way = []
        messages: list[AskedMessage] = []
        for _ in range(self._random.randint(1, 4)):
            change = self._cancellation(partition) if self._random.random() < 0.12 else None
            if change is not None:
                value, headers = change
                message = None
            else:
                message, headers = self._message(partition)
                message.ending = ending
                value = message.value
                messages.append(message)
            future = await producer.send(
                partition.topic, value, partition=partition.partition, headers=headers
            )
            under_way.append((message, value, future))
        for message, value, future in under_way:
            written = await future
            self._history.acknowledge(partition, written.offset, [value])
            if message is not None:
                message.offset = written.offset
        return messages

    # -- programs --------------------------------------------------------------------------------

    async def run(self, make: MakeProducer, partition: TopicPartition) -> None:
        """Send until told to finish."""
        async with make() as producer:
            while not self._is_finishing:
                await self._send_some(producer, partition, None)
                await asyncio.sleep(self._random.random() * 0.6)

    async def run_transactions(self, make: MakeProducer, partition: TopicPartition) -> None:
        """Send in transactions, some of which stay open until their messages are due."""
        while not self._is_finishing:
            producer = make()
            try:
                await producer.start()
                await producer.init_transactions()
                while not self._is_finishing:
                    await self._one_transaction(producer, partition)
                    await asyncio.sleep(self._random.random())
            except KafkaError:
                await asyncio.sleep(self._random.random())  # Such as one that took too long.
            await producer.close(0.0)

    async def _one_transaction(self, producer: AsyncProducer, partition: TopicPartition) -> None:
        """Raises if this producer can do no more."""
        before = len(self._delays.asked)
        is_commit = self._random.random() > 0.25
        await producer.begin_transaction()
        try:
            await self._send_some(producer, partition, Ending.UNKNOWN)
            await asyncio.sleep(self._random.choice((0.0, 0.3, 3.0)) * self._random.random())
            if is_commit:
                await producer.commit_transaction()
                self._has_ended(before, Ending.COMMITTED)
                return
        except KafkaError:
            if is_commit:
                raise
        await producer.abort_transaction()
        self._has_ended(before, Ending.ABORTED)

    def _has_ended(self, before: int, ending: Ending) -> None:
        """All that was sent in the transaction has come to this end."""
        for message in list(self._delays.asked.values())[before:]:
            if message.value.startswith(self.name.encode() + b"/"):
                message.ending = ending
