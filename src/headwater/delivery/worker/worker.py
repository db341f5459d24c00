"""`Worker`: handles the records of topics in threads, and sends on what fails.

    def charge(record):
        ...

    Worker("orders", group="billing", handler=charge, bootstrap_servers="...").run()

Every record has one committed outcome: it was handled, or it was sent to the group's retry topic,
from where it comes back when it is due. It may be handled more than once: see docs/worker.md.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Self, Unpack

from headwater.base.ids import TopicPartition
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.listeners import RebalanceListener
from headwater.delivery.worker.clients import AdminNow, ConsumerNow, ProducerNow, run_now
from headwater.delivery.worker.crews.crew import Crew
from headwater.delivery.worker.crews.direct import DirectCrew
from headwater.delivery.worker.crews.threads import ThreadCrew
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
from headwater.delivery.worker.traced_handles import with_trace


class Worker(RebalanceListener):
    """Runs once. `run` is for one thread; everything else may be called from any."""

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
        for handler in options.handlers.values():
            if inspect.iscoroutinefunction(handler):
                raise TypeError(f"The handler {handler!r} is a coroutine: use AsyncWorker.")
        self._options = options
        self._work = Work(options)
        self._consumer: ConsumerNow | None = None
        self._loop: WorkerLoop | None = None
        self._is_stopping = False
        self._retry_topics: tuple[str, ...] = ()

    def run(self, *, handle_signals: bool = True) -> None:
        """Handle records until `stop`; raises what does not pass.

        In the main thread SIGTERM and SIGINT stop it as well, and what is being handled is
        finished; a second one of them does what it would do otherwise.
        """
        signals = STOP_SIGNALS.stopping(self._stop_soon)
        with signals if handle_signals else contextlib.nullcontext():
            options = self._options
            found = run_now(prepare_topics(AdminNow(options.bootstrap_config), options))
            self._retry_topics = found.retry_topics
            self._work.queues_ms = found.queues_ms
            self._work.asked_times.longest_ms = found.after_max_ms
            consumer = self._consumer = ConsumerNow(Consumer(options.consumer_config))
            settler = Settler(options, self._work, consumer, ProducerNow, make_unique())
            self._loop = WorkerLoop(options, self._work, consumer, settler, self._crew(consumer))
            if self._is_stopping:
                self._loop.stop()
            consumer.subscribe([*options.handlers, *self._retry_topics], listener=self)
            run_now(self._loop.run())

    def stop(self) -> None:
        """Let `run` return once the records that are being handled are."""
        self._stop_soon()
        if self._consumer is not None:
            self._consumer.wakeup()

    def metrics(self) -> WorkerMetrics:
        return self._work.metrics()

    def health(self) -> Health:
        if self._loop is None:
            return Health(False, "new", "The worker does not run yet.")
        return self._loop.health()

    def _crew(self, consumer: ConsumerNow) -> Crew:
        options = self._options
        handle = make_handle(options.handlers, self._retry_topics, options.deserializers)
        handle = with_trace(handle, consumer)
        if options.is_direct:
            return DirectCrew(self._work, handle)
        return ThreadCrew(self._work, handle, options.concurrency, consumer.wakeup)

    def _stop_soon(self) -> None:
        """What a signal handler may do: it must not touch the locks that its thread may hold."""
        self._is_stopping = True
        if self._loop is not None:
            self._loop.stop()

    # -- rebalances ------------------------------------------------------------------------------

    def on_partitions_assigned(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        if self._loop is not None:
            run_now(self._loop.assigned(partitions, self._retry_topics))

    def on_partitions_revoked(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        if self._loop is not None:
            run_now(self._loop.revoked(partitions))

    def on_partitions_lost(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        if self._loop is not None:
            self._loop.lost(partitions)
