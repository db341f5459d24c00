"""`AsyncWorker`: handles the records of topics in tasks, and sends on what fails.

async def charge(record):
    ...

await AsyncWorker("orders", group="billing", handler=charge, concurrency=20).run()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Self, Unpack

from headwater.base.ids import TopicPartition
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.environment import ClientT, HasEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.worker.crews.crew import Crew
from headwater.delivery.worker.crews.direct import AsyncDirectCrew
from headwater.delivery.worker.crews.tasks import TaskCrew
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.dispatch import make_handle
from headwater.delivery.worker.loop import WorkerLoop
from headwater.delivery.worker.metrics import Health, WorkerMetrics
from headwater.delivery.worker.options import (
    Handler,
    WorkerOptions,
    WorkerSettings,
    handlers_of,
    make_unique,
    read_options,
)
from headwater.delivery.worker.settler import Settler
from headwater.delivery.worker.stop_signals import STOP_SIGNALS
from headwater.delivery.worker.topics import prepare_topics
from headwater.delivery.worker.traced_handles import with_trace_in_tasks


class AsyncWorker(RebalanceListener, HasEnvironment):
    """Runs once, on the caller's event loop. Handlers are coroutine functions."""

    def __init__(
        self,
        topics: Iterable[str],
        *,
        group: str,
        handler: Handler,
        config: Mapping[str, object] | None = None,
        **settings: Unpack[WorkerSettings],
    ) -> None:
        self._begin(read_options(group, handlers_of(topics, handler), config, settings))

    @classmethod
    def of(cls, options: WorkerOptions) -> Self:
        """A worker with a handler for each topic, as an `App` makes it."""
        worker = cls.__new__(cls)
        worker._begin(options)
        return worker

    def _begin(self, options: WorkerOptions) -> None:
        self._options = options
        self._work = Work(options)
        self._consumer: AsyncConsumer | None = None
        self._loop: WorkerLoop | None = None
        self._is_stopping = False
        self._retry_topics: tuple[str, ...] = ()

    async def run(self, *, handle_signals: bool | None = None) -> None:
        """Handle records until `stop`; raises what does not pass.

        In the main thread SIGTERM and SIGINT stop it as well, and what is being handled is
        finished; a second one of them does what it would do otherwise. A program that looks after
        a signal itself keeps it, unless `handle_signals` is true.
        """
        with self._signals(handle_signals):
            options = self._options
            found = await prepare_topics(
                self._placed(AsyncAdmin)(options.bootstrap_config), options
            )
            self._retry_topics = found.retry_topics
            self._work.queues_ms = found.queues_ms
            self._work.asked_times.longest_ms = found.after_max_ms
            consumer = self._consumer = self._placed(AsyncConsumer)(options.consumer_config)
            producer_kind = self._placed(AsyncProducer)
            settler = Settler(options, self._work, consumer, producer_kind, self._unique())
            self._loop = WorkerLoop(
                *(options, self._work, consumer, settler, self._crew(consumer)),
                now_s=asyncio.get_running_loop().time,
            )
            if self._is_stopping:
                self._loop.stop()
            consumer.subscribe([*options.handlers, *self._retry_topics], listener=self)
            await self._loop.run()

    def stop(self) -> None:
        """Let `run` return once the records that are being handled are; from the same loop."""
        self._is_stopping = True
        if self._loop is not None:
            self._loop.stop()
        if self._consumer is not None:
            self._consumer.wakeup()

    def metrics(self) -> WorkerMetrics:
        return self._work.metrics()

    def health(self) -> Health:
        if self._loop is None:
            return Health(False, "new", "The worker does not run yet.")
        return self._loop.health()

    def _placed(self, kind: type[ClientT]) -> type[ClientT]:
        """The same kind of client, in the environment of this worker."""
        given = self._given_environment
        return kind if given is None else in_environment(kind, given)

    def _unique(self) -> str:
        given = self._given_environment
        return make_unique() if given is None else f"{given.generator.getrandbits(64):x}"

    def _crew(self, consumer: AsyncConsumer) -> Crew:
        options = self._options
        handle = make_handle(options.handlers, self._retry_topics, options.deserializers)
        handle = with_trace_in_tasks(handle, consumer)
        if options.is_direct:
            return AsyncDirectCrew(self._work, handle)
        return TaskCrew(self._work, handle, options.concurrency, consumer.wakeup)

    def _signals(self, is_wanted: bool | None) -> AbstractContextManager[None]:
        # A worker of a simulation is not the program that signals are sent to.
        if is_wanted is False or (is_wanted is None and self._given_environment is not None):
            return contextlib.nullcontext()
        stop = partial(asyncio.get_running_loop().call_soon_threadsafe, self.stop)
        return STOP_SIGNALS.stopping(stop, is_polite=is_wanted is None)

    # -- rebalances ------------------------------------------------------------------------------

    async def on_partitions_assigned(
        self, consumer: Any, partitions: frozenset[TopicPartition]
    ) -> None:
        if self._loop is not None:
            await self._loop.assigned(partitions, self._retry_topics)

    async def on_partitions_revoked(
        self, consumer: Any, partitions: frozenset[TopicPartition]
    ) -> None:
        if self._loop is not None:
            await self._loop.revoked(partitions)

    async def on_partitions_lost(
        self, consumer: Any, partitions: frozenset[TopicPartition]
    ) -> None:
        if self._loop is not None:
            self._loop.lost(partitions)
