"""A region of no file: enough for what only counts it and passes it on."""

import io
from typing import NamedTuple

from headwater.base.region import RegionFile


class FakeRegion(NamedTuple):
    """As many times `filling` as it is large."""

    size: int
    filling: bytes = b"x"
    position: int = 0

    @property
    def file(self) -> RegionFile:
        raise io.UnsupportedOperation("There is no file behind this region.")

    def read(self) -> bytes:
        return self.filling * self.size
