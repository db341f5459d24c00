"""The parts of an answer, as this layer tells them apart: see `base.region`."""

from __future__ import annotations

from headwater.base.region import Buffer, Part, Region, RegionFile

__all__ = ["BUFFER_TYPES", "Buffer", "Part", "Region", "RegionFile"]

BUFFER_TYPES = frozenset((bytes, bytearray, memoryview))
