"""A record as a producer's user gives it, before serializers have seen it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

#: Bytes, or text that is written as UTF-8. A header may also have no value.
HeaderValue: TypeAlias = bytes | str | None
#: A dict, or pairs, which may have the same name twice.
HeadersLike: TypeAlias = Mapping[str, HeaderValue] | Iterable[tuple[str, HeaderValue]]


class ProducerRecord(NamedTuple):
    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    headers: HeadersLike | None = ()
    #: Milliseconds since 1970; None for the time of the call.
    timestamp_ms: int | None = None
