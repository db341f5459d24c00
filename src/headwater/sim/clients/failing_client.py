"""A simulated program that cannot handle its records, and sends them on to a retry topic.

It is one that stays alive: what it sends is acknowledged in the end, in transactions or not. Some
records have attempts left, some have not, and some it gives up at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from headwater.base.errors import KafkaError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.histories.transaction_history import Ending
from headwater.wire.delayed.headers import ATTEMPTS_HEADER, DEAD_HEADER, ORIGIN_HEADER

Headers = list[tuple[str, bytes]]


@dataclass
class Failure:
    """A record that was sent on, and what must become of it."""

    value: bytes
    is_dead: bool
    ending: Ending = Ending.UNKNOWN


@dataclass
class FailingClient:
    """Of one process; `attempts_max` is what the topic allows."""

    name: str
    topic: str
    attempts_max: int
    random: Random
    make: Callable[[], AsyncProducer]
    failures: list[Failure] = field(default_factory=list)
    is_finishing: bool = False

    def _failure(self) -> tuple[Failure, Headers]:
        number = len(self.failures)
        attempts = self.random.randint(0, self.attempts_max)
        headers: Headers = [(ATTEMPTS_HEADER, b"%d" % attempts)]
        is_given_up = self.random.random() < 0.3
        if is_given_up:
            headers.append((DEAD_HEADER, b"it is given up"))
        if self.random.random() < 0.5:
            headers.append((ORIGIN_HEADER, b"orders-0@%d" % number))
        is_dead = is_given_up or attempts + 1 > self.attempts_max
        failure = Failure(f"{self.name}/{number}".encode(), is_dead)
        self.failures.append(failure)
        return failure, headers

    async def _send_some(self, producer: AsyncProducer) -> list[Failure]:
        sent = []
        for _ in range(self.random.randint(1, 5)):
            failure, headers = self._failure()
            key = b"%d" % self.random.randrange(4)
            future = await producer.send(self.topic, failure.value, key, headers=headers)
            sent.append((failure, future))
        for _, future in sent:
            await future
        return [failure for failure, _ in sent]

    async def run(self) -> None:
        """Send until told to finish."""
        async with self.make() as producer:
            while not self.is_finishing:
                for failure in await self._send_some(producer):
                    failure.ending = Ending.COMMITTED
                await asyncio.sleep(self.random.random())

    async def run_transactions(self) -> None:
        """The same in transactions, some of which are aborted."""
        while not self.is_finishing:
            producer = self.make()
            try:
                await producer.start()
                await producer.init_transactions()
                while not self.is_finishing:
                    await self._one_transaction(producer)
                    await asyncio.sleep(self.random.random())
            except KafkaError:
                await asyncio.sleep(self.random.random())  # What became of it is not known.
            await producer.close(0.0)

    async def _one_transaction(self, producer: AsyncProducer) -> None:
        await producer.begin_transaction()
        sent = await self._send_some(producer)
        await asyncio.sleep(self.random.random())
        if self.random.random() < 0.7:
            await producer.commit_transaction()
            ending = Ending.COMMITTED
        else:
            await producer.abort_transaction()
            ending = Ending.ABORTED
        for failure in sent:
            failure.ending = ending
