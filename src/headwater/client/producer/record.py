"""A record as a producer's user gives it, before serializers have seen it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headwater.wire.records import Header


class ProducerRecord(NamedTuple):
    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    headers: Sequence[Header] = ()
    #: Milliseconds since 1970; None for the time of the call.
    timestamp_ms: int | None = None
