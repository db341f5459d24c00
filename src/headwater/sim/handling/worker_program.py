"""A program with an `AsyncWorker` in it, started anew after whatever ends its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.delivery.worker.async_worker import AsyncWorker
from headwater.sim.handling.chance_handler import ChanceHandler, HopelessError, deserialize
from headwater.sim.handling.ledger import HandlingLedger


class WatchedWorker(AsyncWorker):
    """Writes down which partitions it has."""

    program: str
    ledger: HandlingLedger
    now_s: Callable[[], float]

    async def on_partitions_assigned(
        self, consumer: Any, partitions: frozenset[TopicPartition]
    ) -> None:
        self.ledger.assign(self.program, partitions, self.now_s())
        await super().on_partitions_assigned(consumer, partitions)

    async def on_partitions_revoked(
        self, consumer: Any, partitions: frozenset[TopicPartition]
    ) -> None:
        await super().on_partitions_revoked(consumer, partitions)
        self.ledger.release(self.program, partitions)

    async def on_partitions_lost(
        self, consumer: Any, partitions: frozenset[TopicPartition]
    ) -> None:
        await super().on_partitions_lost(consumer, partitions)
        self.ledger.release(self.program, partitions)


class WorkerProgram:
    def __init__(
        self,
        name: str,
        topic: str,
        ledger: HandlingLedger,
        environment: ClientEnvironment,
        settings: Mapping[str, Any],
        *,
        now_s: Callable[[], float],
        note: Callable[[str], None],
    ) -> None:
        self.name = name
        self.instance: str | None = settings.get("instance")
        self.is_stopping = False
        #: Errors that ended its worker.
        self.failures: list[KafkaError] = []
        self._topic = topic
        self._ledger = ledger
        self._environment = environment
        self._settings = settings
        self._now_s = now_s
        self._note = note
        self._worker: WatchedWorker | None = None

    def _make(self) -> WatchedWorker:
        random = Random(self._environment.generator.random())
        handler = ChanceHandler(self.name, self._ledger, random, self._now_s)
        worker = in_environment(WatchedWorker, self._environment)(
            [self._topic],
            group=self._ledger.group_id,
            handler=handler,
            value_deserializer=deserialize,
            hopeless=(HopelessError,),
            **self._settings,
        )
        worker.program, worker.ledger, worker.now_s = self.name, self._ledger, self._now_s
        return worker

    async def run(self) -> None:
        """Until `stop`, as whoever looks after programs has them run."""
        while not self.is_stopping:
            worker = self._worker = self._make()
            try:
                await worker.run()
            except KafkaError as error:
                self.failures.append(error)
                self._note(f"{self.name} ended: {type(error).__name__}: {error}")
            self._ledger.ended(self.name)
            await asyncio.sleep(self._environment.generator.random())

    def stop(self) -> None:
        """As SIGTERM does."""
        self.is_stopping = True
        if self._worker is not None:
            self._worker.stop()
