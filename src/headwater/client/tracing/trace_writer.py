"""Writes steps and links to `__trace`, in the background, by a producer of its own.

    put (any thread) -> queue with a bound -> a task of the client's loop -> AsyncProducer

Nobody who sends or polls ever waits for a trace: what finds the queue full is dropped, what the
cluster does not take is lost, and both are counted. The producer is made with the first step, so a
client that traces nothing has no connection for it, and it is not traced itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, Protocol

from headwater.base.errors import KafkaError
from headwater.base.settings import SettingValues
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.tracing.trace_step import (
    TraceLink,
    TraceRecord,
    TraceStep,
    encode_link,
    encode_step,
)


class StepProducer(Protocol):
    """What is needed of an `AsyncProducer`."""

    async def start(self) -> None: ...

    async def send(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        *,
        timestamp_ms: int | None,
        on_delivery: OnDelivery,
    ) -> object: ...

    async def flush(self) -> None: ...

    async def close(self, timeout_s: float) -> None: ...


#: Steps gather for so long before they are taken to the producer.
_PAUSE_S: Final = 0.05
#: The loop has other things to do after so many.
_TURN_STEPS: Final = 200
_PRODUCER_CONFIG: Final = {
    "acks": 1,
    "linger.ms": 50,
    "compression.type": "lz4",
    "buffer.memory": 4 << 20,
    "buffer.full.policy": "drop",
    "max.block.ms": 5_000,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 15_000,
}

_logger = logging.getLogger("headwater.client")


class TraceWriter:
    """Made on the client's loop."""

    def __init__(
        self, topic: str, steps_max: int, make_producer: Callable[[], StepProducer]
    ) -> None:
        self.dropped_count = 0
        self._topic = topic
        self._steps_max = steps_max
        self._make_producer = make_producer
        self._loop = asyncio.get_running_loop()
        self._queue: deque[TraceStep | TraceLink] = deque()
        self._is_awake = False
        self._writing: asyncio.Task[None] | None = None
        self._producer: StepProducer | None = None
        self._failure: KafkaError | None = None

    @classmethod
    def of_settings(cls, values: SettingValues, environment: ClientEnvironment) -> TraceWriter:
        """To the cluster of the client with these settings."""

        def make() -> StepProducer:
            config: dict[str, object] = {
                name: values.render(name, reveal=True)
                for name in values.sources
                if name in COMMON_SETTINGS
            }
            name = f"{values.text('client.id')}-trace"
            # By its name, since every producer may have a trace, and so a writer.
            kind = import_module("headwater.client.producer.async_producer").AsyncProducer
            producer: StepProducer = in_environment(kind, environment)(
                {**config, "client.id": name, **_PRODUCER_CONFIG}
            )
            return producer

        return cls(values.text("trace.topic"), values.integer("trace.buffer.steps"), make)

    def put(self, steps: Sequence[TraceStep], links: Sequence[TraceLink]) -> None:
        """Called from any thread."""
        room = self._steps_max - len(self._queue)
        if len(steps) + len(links) > room:
            self.dropped_count += max(0, len(steps) - max(0, room))
            steps = steps[: max(0, room)]
            links = links[: max(0, room - len(steps))]
        self._queue.extend(itertools.chain(steps, links))
        if not self._is_awake:
            self._is_awake = True
            # After the end of the loop there is nobody to be woken.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken)

    async def close(self, timeout_s: float) -> None:
        """Write what is left, within that time; what is not written then is dropped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._queue or self._writing is not None:
                    self._begin()
                    if self._writing is not None:
                        await asyncio.wait([self._writing])
                if self._producer is not None:
                    await self._producer.flush()
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        self._drop(list(self._queue))
        self._queue.clear()
        if self._producer is not None:
            await self._producer.close(0)
        if self.dropped_count:
            reason = "" if self._failure is None else f" {self._failure}"
            _logger.warning(
                "%d steps of traces were not written to %s.%s",
                *(self.dropped_count, self._topic, reason),
            )

    # -- on the loop -----------------------------------------------------------------------------

    def _woken(self) -> None:
        self._loop.call_later(_PAUSE_S, self._begin)

    def _begin(self) -> None:
        self._is_awake = False
        if self._writing is None and self._queue and not self._loop.is_closed():
            self._is_awake = True
            self._writing = self._loop.create_task(self._write())
            self._writing.add_done_callback(self._ended)

    def _ended(self, writing: asyncio.Task[None]) -> None:
        self._writing = None
        self._is_awake = False
        if not writing.cancelled() and (error := writing.exception()) is not None:
            _logger.error("Steps of traces cannot be written.", exc_info=error)
        elif self._queue:
            self._is_awake = True
            self._woken()

    async def _write(self) -> None:
        if self._producer is None:
            self._producer = self._make_producer()
            await self._producer.start()
        while self._queue:
            for _ in range(min(_TURN_STEPS, len(self._queue))):
                await self._send(self._producer, self._queue.popleft())
            await asyncio.sleep(0)

    async def _send(self, producer: StepProducer, item: TraceStep | TraceLink) -> None:
        is_step = isinstance(item, TraceStep)
        record, time_ms = _encoded(item)

        def tell(_: RecordMetadata | None, error: KafkaError | None) -> None:
            if error is not None:
                self._failed(error, is_step=is_step)

        try:
            await producer.send(
                self._topic, record.value, record.key, timestamp_ms=time_ms, on_delivery=tell
            )
        except KafkaError as error:
            self._failed(error, is_step=is_step)
        except asyncio.CancelledError:
            self._drop([item])
            raise

    def _failed(self, error: KafkaError, *, is_step: bool) -> None:
        self._failure = error
        self.dropped_count += is_step

    def _drop(self, items: Sequence[TraceStep | TraceLink]) -> None:
        self.dropped_count += sum(isinstance(item, TraceStep) for item in items)


def _encoded(item: TraceStep | TraceLink) -> tuple[TraceRecord, int | None]:
    if isinstance(item, TraceStep):
        return encode_step(item), item.time_ms
    return encode_link(item), None
