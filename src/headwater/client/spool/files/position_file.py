"""Where shipping stands, in a file that no crash can make unreadable.

The file has two slots, each in a page of its own, and writes go to them in turn: a write that is
torn spoils one, and the other still has the position before. The position never goes back, so
the larger of those that are valid counts.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from headwater.client.spool.files.local_files import SpoolFiles

_SLOT = struct.Struct(">8sQI")
_MAGIC = b"HWSPPOS1"
_SLOT_DISTANCE = 4096
_SLOT_COUNT = 2

NAME = "position"


class PositionFile:
    """Written by the shipper's thread alone."""

    def __init__(self, files: SpoolFiles, directory: str, *, is_synced: bool) -> None:
        path = f"{directory}/{NAME}"
        is_new = not files.exists(path)
        self._file = files.open(path, create=True)
        self._is_synced = is_synced
        if is_new and is_synced:
            files.sync_dir(directory)
        slots = [self._read(index) for index in range(_SLOT_COUNT)]
        #: The number of the first record that is not known to be delivered, as it is on disk.
        self.number: int | None = max((slot for slot in slots if slot is not None), default=None)
        self._next_slot = 1 if slots[0] is not None and slots[0] == self.number else 0

    def write(self, number: int) -> None:
        fields = _MAGIC + number.to_bytes(8, "big")
        slot = fields + crc32c(fields).to_bytes(4, "big")
        self._file.write_at(self._next_slot * _SLOT_DISTANCE, slot)
        if self._is_synced:
            self._file.sync()
        self._next_slot = (self._next_slot + 1) % _SLOT_COUNT
        self.number = number

    def close(self) -> None:
        self._file.close()

    def _read(self, index: int) -> int | None:
        data = self._file.read_at(index * _SLOT_DISTANCE, _SLOT.size)
        if len(data) < _SLOT.size:
            return None
        magic, number, checksum = _SLOT.unpack(data)
        if magic != _MAGIC or checksum != crc32c(data[: _SLOT.size - 4]):
            return None
        return int(number)
