"""Handlers of a worker whose consumer traces: each call is a step of its record's trace."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.worker.dispatch import Handle


class MayTrace(Protocol):
    """A consumer that may trace."""

    @property
    def is_traced(self) -> bool: ...

    def handling(self, record: ConsumerRecord) -> AbstractContextManager[None]: ...


def with_trace(handle: Handle, consumer: MayTrace) -> Handle:
    """The handler as it is called by threads; itself, unless the consumer traces."""
    if not consumer.is_traced:
        return handle
    handling = consumer.handling

    def traced(record: ConsumerRecord) -> Any:
        with handling(record):
            return handle(record)

    return traced


def with_trace_in_tasks(handle: Handle, consumer: MayTrace) -> Handle:
    """The same for a handler that is a coroutine function."""
    if not consumer.is_traced:
        return handle
    handling = consumer.handling

    async def traced(record: ConsumerRecord) -> Any:
        with handling(record):
            return await handle(record)

    return traced
