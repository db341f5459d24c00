"""The records of `__trace`: steps of messages, and links from messages to their traces.

A *step* is what one client did with one record at one time. Its key is the trace id, so all steps
of a trace lie in one partition, wherever they were written. A *link* says to which trace a message
belongs; its key is the message's id, so that who has only `orders-0@1234` finds the trace without
an index. A message may have more than one link, since whoever meets an error writes one.

Both are JSON objects with `version` and `kind`. Names are never changed and never mean anything
else; later versions may add some. What is None is left out. Anybody may write to `__trace`, so
whatever is read is checked, and what is neither of both is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.base import ids
from headwater.base.message_id import MessageId

TRACE_TOPIC: Final = ids.TRACE_TOPIC
VERSION: Final = 1

#: A producer has taken the record.
CREATED: Final = "created"
#: A request with it has left, for the first time.
SENT: Final = "sent"
#: A request with it has left again; `attempt` says for which time.
RETRIED: Final = "retried"
#: The cluster has it: now it has a message id.
ACKNOWLEDGED: Final = "acknowledged"
#: The producer has given it up; `error` says why.
FAILED: Final = "failed"
#: A consumer was handed it by a poll.
FETCHED: Final = "fetched"
#: A handler is done with it; with an `error` if it could not handle it.
HANDLED: Final = "handled"
#: A group has committed past it.
COMMITTED: Final = "committed"

#: Steps in the order in which they come if nothing goes wrong: for those of the same millisecond.
STEPS: Final = (CREATED, SENT, RETRIED, ACKNOWLEDGED, FAILED, FETCHED, HANDLED, COMMITTED)

#: What details may hold.
Detail: TypeAlias = str | int | float | bool | None

_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_KIND_STEP: Final = "step"
_KIND_LINK: Final = "link"
_TIME_MS_MAX: Final = 2**63 - 1
#: The texts that a step may have, and the name of each in JSON.
_TEXTS: Final = ("topic", "host", "client_id", "group", "member", "error")


@dataclass(frozen=True, slots=True)
class TraceStep:
    """What one client did with one record."""

    #: 32 hexadecimal digits in lower case, as in `traceparent`.
    trace_id: str
    #: One of `STEPS`; those who read should bear with others.
    step: str
    #: Milliseconds since 1970, by the clock of `host`.
    time_ms: int
    #: `orders-0@1234`; None as long as nobody knows.
    message_id: str | None = None
    topic: str | None = None
    host: str | None = None
    client_id: str | None = None
    group: str | None = None
    member: str | None = None
    #: Counted from one.
    attempt: int | None = None
    #: What went wrong, in a sentence that begins with the error's class.
    error: str | None = None
    #: What else there is to say, such as `span_id`, `parent_span_id` or `duration_ms`.
    details: Mapping[str, Detail] = field(default_factory=dict)


class TraceLink(NamedTuple):
    """Of which trace a message is."""

    message_id: str
    trace_id: str


class TraceRecord(NamedTuple):
    """A step or a link as it is stored."""

    key: bytes
    value: bytes


def is_trace_id(text: object) -> bool:
    """Whether these are 32 hexadecimal digits in lower case that are not all zero."""
    return isinstance(text, str) and bool(_TRACE_ID.fullmatch(text)) and text.strip("0") != ""


def encode_step(step: TraceStep) -> TraceRecord:
    row: dict[str, Any] = {
        "version": VERSION,
        "kind": _KIND_STEP,
        "trace_id": step.trace_id,
        "step": step.step,
        "time_ms": step.time_ms,
        "message_id": step.message_id,
        **{name: getattr(step, name) for name in _TEXTS},
        "attempt": step.attempt,
        "details": dict(step.details) or None,
    }
    return TraceRecord(step.trace_id.encode(), _encode(row))


def encode_link(link: TraceLink) -> TraceRecord:
    row = {
        "version": VERSION,
        "kind": _KIND_LINK,
        "message_id": link.message_id,
        "trace_id": link.trace_id,
    }
    return TraceRecord(link.message_id.encode("utf-8", "surrogatepass"), _encode(row))


def decode_step(value: bytes | memoryview | bytearray | None) -> TraceStep | None:
    """The step of a record; None if it is none."""
    row = _decode(value, _KIND_STEP)
    if row is None or not _is_sound_step(row):
        return None
    details = row.get("details") or {}
    return TraceStep(
        row["trace_id"],
        row["step"],
        row["time_ms"],
        row.get("message_id"),
        attempt=row.get("attempt"),
        details={name: detail for name, detail in details.items() if _is_detail(detail)},
        **{name: row.get(name) for name in _TEXTS},
    )


def decode_link(value: bytes | memoryview | bytearray | None) -> TraceLink | None:
    """The link of a record; None if it is none."""
    row = _decode(value, _KIND_LINK)
    if row is None or not is_trace_id(row.get("trace_id")):
        return None
    message_id = row.get("message_id")
    if not isinstance(message_id, str) or not _is_message_id(message_id):
        return None
    return TraceLink(message_id, row["trace_id"])


def _is_sound_step(row: Mapping[str, Any]) -> bool:
    message_id, attempt, details = (row.get(each) for each in ("message_id", "attempt", "details"))
    time_ms = row.get("time_ms")
    return (
        is_trace_id(row.get("trace_id"))
        and isinstance(row.get("step"), str)
        and type(time_ms) is int
        and 0 <= time_ms <= _TIME_MS_MAX
        and (message_id is None or _is_message_id(message_id))
        and all(row.get(name) is None or isinstance(row[name], str) for name in _TEXTS)
        and (attempt is None or (type(attempt) is int and attempt >= 1))
        and (details is None or isinstance(details, dict))
    )


def _is_message_id(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(MessageId.parse(text))
    except ValueError:
        return False


def _is_detail(detail: object) -> bool:
    return detail is None or isinstance(detail, str | int | float | bool)


def _decode(value: bytes | memoryview | bytearray | None, kind: str) -> dict[str, Any] | None:
    try:
        row = json.loads(bytes(value or b""))
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.get("version") != VERSION or row.get("kind") != kind:
        return None
    return row


def _encode(row: Mapping[str, Any]) -> bytes:
    told = {name: value for name, value in row.items() if value is not None}
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
