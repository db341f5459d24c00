"""A record as it goes into a batch: bytes, a timestamp, and about how much room it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from headwater.client.producer.record_metadata import OnDelivery
from headwater.wire.records import Header

#: About what a record takes beyond key, value and headers. More is rare: a large record, or one of
#: another time than its neighbours.
RECORD_OVERHEAD_BYTES: Final = 12
HEADER_OVERHEAD_BYTES: Final = 10
TIMESTAMP_MAX: Final = 2**63 - 1

Headers: TypeAlias = Sequence[Header]


class SerializedRecord(NamedTuple):
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    #: About what it takes in a batch.
    size_bytes: int
    on_delivery: OnDelivery | None = None
