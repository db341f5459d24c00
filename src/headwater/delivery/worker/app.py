"""`App`: a worker whose handlers are declared one by one.

    app = App(group="billing", bootstrap_servers="...")

    @app.handle("orders")
    def charge(record): ...

    app.run()

If the handlers are coroutine functions, they run on an event loop; all of them, or none.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar, Unpack

from headwater.base.settings import SettingError
from headwater.delivery.worker.async_worker import AsyncWorker
from headwater.delivery.worker.metrics import Health, WorkerMetrics
from headwater.delivery.worker.options import Handler, WorkerSettings, read_options
from headwater.delivery.worker.worker import Worker

HandlerT = TypeVar("HandlerT", bound=Handler)


class App:
    def __init__(
        self,
        *,
        group: str,
        config: Mapping[str, object] | None = None,
        **settings: Unpack[WorkerSettings],
    ) -> None:
        self._group = group
        self._config = config
        self._settings = settings
        self._handlers: dict[str, Handler] = {}
        self._worker: Worker | AsyncWorker | None = None

    def handle(self, *topics: str) -> Callable[[HandlerT], HandlerT]:
        """Have the function below handle the records of these topics."""

        def declare(handler: HandlerT) -> HandlerT:
            for topic in topics:
                if topic in self._handlers:
                    raise SettingError(f"The topic {topic!r} has a handler already.")
                self._handlers[topic] = handler
            return handler

        return declare

    def make_worker(self) -> Worker | AsyncWorker:
        """The worker with all handlers that are declared by now."""
        options = read_options(self._group, self._handlers, self._config, self._settings)
        kinds = {inspect.iscoroutinefunction(handler) for handler in self._handlers.values()}
        if len(kinds) > 1:
            raise SettingError("The handlers of an app are all coroutines, or none of them is.")
        self._worker = AsyncWorker.of(options) if kinds == {True} else Worker.of(options)
        return self._worker

    def run(self) -> None:
        """Handle records until `stop`, SIGTERM or SIGINT."""
        worker = self.make_worker()
        if isinstance(worker, Worker):
            worker.run()
        else:
            asyncio.run(worker.run(handle_signals=True))

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    def metrics(self) -> WorkerMetrics | None:
        """None before it runs."""
        return None if self._worker is None else self._worker.metrics()

    def health(self) -> Health:
        if self._worker is None:
            return Health(False, "new", "The app does not run yet.")
        return self._worker.health()
