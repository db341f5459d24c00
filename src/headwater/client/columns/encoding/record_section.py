"""Records that came as columns: encoded already, without an object for each."""

from __future__ import annotations

from typing import NamedTuple

from headwater.wire.records import Buffer


class RecordSection(NamedTuple):
    """The records of a batch as bytes, not compressed, with offset deltas from 0 on."""

    data: Buffer
    record_count: int
    base_timestamp: int
    max_timestamp: int
