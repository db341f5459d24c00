"""A program that fills the topic of a campaign, in transactions or not, and knows what it wrote."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from headwater.base.errors import KafkaError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.handling.chance_handler import UNREADABLE
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.histories.transaction_history import Ending

_KEYS = (None, b"a", b"b", b"c")
#: More would take long, and show no more; fewer would show little.
_RECORDS_MAX = 25
_RECORDS_MIN = 8


@dataclass
class SourceWriter:
    name: str
    topic: str
    random: Random
    make: Callable[[], AsyncProducer]
    endings: dict[bytes, Ending] = field(default_factory=dict)
    is_finishing: bool = False

    @property
    def _is_over(self) -> bool:
        return len(self.endings) >= (_RECORDS_MIN if self.is_finishing else _RECORDS_MAX)

    async def run(self) -> None:
        """Write until told to finish."""
        async with self.make() as producer:
            while not self._is_over:
                self._end(await self._write_some(producer), Ending.COMMITTED)
                await asyncio.sleep(self.random.random())

    async def run_transactions(self) -> None:
        """The same in transactions, some of which are aborted."""
        while not self._is_over:
            producer = self.make()
            try:
                await producer.start()
                await producer.init_transactions()
                while not self._is_over:
                    await self._one_transaction(producer)
                    await asyncio.sleep(self.random.random())
            except KafkaError:
                await asyncio.sleep(self.random.random())  # What became of it is not known.
            await producer.close(0.0)

    async def _one_transaction(self, producer: AsyncProducer) -> None:
        await producer.begin_transaction()
        values = await self._write_some(producer)
        if self.random.random() < 0.7:
            await producer.commit_transaction()
            self._end(values, Ending.COMMITTED)
        else:
            await producer.abort_transaction()
            self._end(values, Ending.ABORTED)

    async def _write_some(self, producer: AsyncProducer) -> list[bytes]:
        sent = []
        for _ in range(self.random.randint(1, 4)):
            mark = UNREADABLE if self.random.random() < 0.1 else b""
            value = mark + f"{self.name}/{len(self.endings)}".encode()
            self.endings[value] = Ending.UNKNOWN
            key = self.random.choice(_KEYS)
            sent.append((value, await producer.send(self.topic, value, key)))
        for _, future in sent:
            await future
        return [value for value, _ in sent]

    def _end(self, values: list[bytes], ending: Ending) -> None:
        for value in values:
            self.endings[value] = ending

    def check(self, values: Sequence[bytes | None]) -> None:
        """What is committed is there once, and nothing else of it is."""
        counts = Counter(values)
        for value, ending in self.endings.items():
            allowed = {Ending.COMMITTED: {1}, Ending.ABORTED: {0}}.get(ending, {0, 1})
            if counts[value] not in allowed:
                raise PropertyViolated(
                    f"what is committed is there once: {value!r} is there {counts[value]} times, "
                    f"and was {ending.value}"
                )
