"""What reaches a simulated disk, as lines of a trace, so that two runs can be compared by it."""

from __future__ import annotations

import zlib

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.trace import Trace


def note_operations(trace: Trace, disk: FaultyDisk, name: str = "disk") -> None:
    """Add what was done with the disk since this was asked last."""
    for operation, path in disk.operations:
        trace.note(name, f"{operation} {path}")
    disk.operations.clear()


def note_contents(trace: Trace, disk: FaultyDisk, name: str = "disk") -> None:
    """Add what every file holds."""
    for path, content in sorted(disk.contents().items()):
        trace.note(name, f"{path} has {len(content)} bytes, {zlib.crc32(content):08x}")
