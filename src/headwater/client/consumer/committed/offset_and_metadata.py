"""What a group has committed for a partition."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """`offset` is that of the next record to read: one more than the last one that is done."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
