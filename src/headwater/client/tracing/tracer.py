"""What all traced clients share: who they are, and where their steps go.

`Steps` are written by any thread, and never make it wait: each sink has a queue with a bound, and
what does not fit is dropped and counted. A sink that fails costs steps, and nothing else.
"""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from headwater.base.settings import SettingValues
from headwater.client.environment import ClientEnvironment
from headwater.client.tracing.trace_context import new_span_id, new_trace_id
from headwater.client.tracing.trace_step import TraceLink, TraceStep
from headwater.client.tracing.trace_writer import TraceWriter

#: The end of a client waits so long at most for steps that are not written.
CLOSE_S_MAX: Final = 3.0
_ERROR_LENGTH_MAX: Final = 1000

_logger = logging.getLogger("headwater.client")


class StepSink(Protocol):
    """Where steps go. `put` is called from any thread, with steps of one event."""

    @property
    def dropped_count(self) -> int: ...

    def put(self, steps: Sequence[TraceStep], links: Sequence[TraceLink]) -> None: ...

    async def close(self, timeout_s: float) -> None:
        """Write what is left, within that time."""
        ...


class Tracer:
    """One for a client."""

    def __init__(
        self,
        client_id: str,
        sinks: Sequence[StepSink],
        *,
        wall_ms: Callable[[], int],
        generator: random.Random,
        parents: bool = False,
    ) -> None:
        self.client_id = client_id
        self.host = socket.gethostname()
        self.wall_ms = wall_ms
        self.generator = generator
        #: Whether what a handler does is told as a child of what sent its record.
        self.parents = parents
        self._sinks = sinks
        self.step_count = 0

    def new_trace_id(self) -> str:
        return new_trace_id(self.generator)

    def new_span_id(self) -> str:
        return new_span_id(self.generator)

    def step(
        self, trace_id: str, step: str, *, time_ms: int | None = None, **what: Any
    ) -> TraceStep:
        """A step of this client's, now unless a time is given."""
        return TraceStep(
            trace_id,
            step,
            self.wall_ms() if time_ms is None else time_ms,
            host=self.host,
            client_id=self.client_id,
            **what,
        )

    def write(self, steps: Sequence[TraceStep], links: Sequence[TraceLink] = ()) -> None:
        """Write the steps of one event."""
        self.step_count += len(steps)
        for sink in self._sinks:
            try:
                sink.put(steps, links)
            except Exception:
                _logger.exception("%r failed to take steps of a trace.", sink)

    def metrics(self) -> dict[str, float]:
        return {
            "trace-steps-total": self.step_count,
            "trace-steps-dropped-total": sum(sink.dropped_count for sink in self._sinks),
        }

    async def close(self, timeout_s: float | None) -> None:
        """Write what is left, for a moment."""
        limit_s = CLOSE_S_MAX if timeout_s is None else min(timeout_s, CLOSE_S_MAX)
        for sink in self._sinks:
            try:
                await sink.close(limit_s)
            except Exception:
                _logger.exception("%r failed in close.", sink)


def error_text(error: BaseException) -> str:
    """An error as steps tell it."""
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return text[:_ERROR_LENGTH_MAX]


def make_tracer(values: SettingValues, environment: ClientEnvironment) -> Tracer | None:
    """What the settings of a client ask for, on its loop; None if they ask for nothing."""
    if not values.boolean("trace.enable"):
        return None
    sinks: list[StepSink] = []
    if values.text("trace.topic"):
        sinks.append(TraceWriter.of_settings(values, environment))
    endpoint = values.optional_text("trace.otlp.endpoint")
    if endpoint:
        from headwater.client.tracing.otlp_spans import open_otlp_spans

        sinks.append(open_otlp_spans(endpoint, parents=values.boolean("trace.otlp.parent")))
    return Tracer(
        values.text("client.id"),
        sinks,
        wall_ms=environment.clock.wall_ms,
        generator=environment.generator,
        parents=values.boolean("trace.otlp.parent"),
    )
