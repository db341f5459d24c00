"""W3C trace context: how a record says which trace it is of, and how that is passed on.

    traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
                 version, trace id, id of the span that made the record, flags (01: sampled)

A record says it in a header of that name, as OpenTelemetry's instrumentations have it, so that
traces are joined whoever wrote the record. `tracestate` is other systems' own and goes along as it
is. Anybody may write headers: what is no trace context is none, and never an error.

`current_trace` is the context of the record that is being handled. It is a context variable, so it
is right in threads, in tasks, and in tasks that a handler starts.
"""

from __future__ import annotations

import contextvars
import random
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.wire.records import Header

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_SAMPLED: Final = 0x01
_TEXT: Final = re.compile(
    rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL
)
_NO_VERSION: Final = b"ff"
#: Of this version we know that nothing follows.
_VERSION: Final = b"00"
_TRACESTATE_BYTES_MAX: Final = 512


class TraceContext(NamedTuple):
    """Of which trace something is, and which span it comes from."""

    trace_id: str
    span_id: str
    flags: int = _SAMPLED
    tracestate: bytes | None = None

    @property
    def is_sampled(self) -> bool:
        return bool(self.flags & _SAMPLED)

    @property
    def traceparent(self) -> bytes:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}".encode()

    def headers(self) -> list[Header]:
        """What a record of this trace carries."""
        state = [] if self.tracestate is None else [(TRACESTATE, self.tracestate)]
        return [(TRACEPARENT, self.traceparent), *state]

    def child(self, span_id: str) -> TraceContext:
        """The same trace, from another span on."""
        return self._replace(span_id=span_id)


def parse_traceparent(value: bytes | str | None) -> TraceContext | None:
    """What a header says; None if that is no trace context."""
    if isinstance(value, str):
        value = value.encode(errors="replace")
    match = _TEXT.fullmatch(value) if isinstance(value, bytes | bytearray) else None
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == _NO_VERSION or (version == _VERSION and rest is not None):
        return None
    if not trace_id.strip(b"0") or not span_id.strip(b"0"):
        return None
    return TraceContext(trace_id.decode(), span_id.decode(), int(flags, 16))


def context_of(headers: Iterable[tuple[str, bytes | str | None]]) -> TraceContext | None:
    """The trace of a record with these headers; of several the last one holds."""
    context: TraceContext | None = None
    state: bytes | None = None
    for name, value in headers:
        if name == TRACEPARENT:
            context = parse_traceparent(value)
        elif name == TRACESTATE and isinstance(value, bytes | bytearray | str):
            whole = value.encode(errors="replace") if isinstance(value, str) else bytes(value)
            state = whole if len(whole) <= _TRACESTATE_BYTES_MAX else None
    return context if context is None or state is None else context._replace(tracestate=state)


def sampled_context_of(headers: Iterable[Header]) -> TraceContext | None:
    """The same, if steps of that trace are to be written."""
    context = context_of(headers)
    return context if context is not None and context.is_sampled else None


def new_trace_id(generator: random.Random) -> str:
    return f"{generator.getrandbits(128) or 1:032x}"


def new_span_id(generator: random.Random) -> str:
    return f"{generator.getrandbits(64) or 1:016x}"


# -- what is being handled -----------------------------------------------------------------------

current: Final[contextvars.ContextVar[TraceContext | None]] = contextvars.ContextVar(
    "headwater_trace", default=None
)


def current_trace() -> TraceContext | None:
    """The trace of the record that is being handled here, if that is traced."""
    return current.get()
