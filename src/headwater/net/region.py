"""The parts of an answer, as this layer counts and tells them apart: see `base.region`."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.region import Buffer, Part, Region, RegionFile

__all__ = ["BUFFER_TYPES", "Buffer", "Part", "Region", "RegionFile", "total_size"]

BUFFER_TYPES = frozenset((bytes, bytearray, memoryview))


def total_size(parts: Iterable[Part]) -> int:
    """How many bytes the peer gets."""
    size = 0
    for part in parts:
        size += len(part) if isinstance(part, bytes | bytearray | memoryview) else part.size
    return size
