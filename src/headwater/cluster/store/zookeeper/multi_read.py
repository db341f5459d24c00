"""Many reads in one request, which ZooKeeper knows since 3.6 and kazoo does not.

A controller that takes over reads the state of every partition. Asked one by one, each of them
costs a fifth of a millisecond of this process; a hundred in one request cost little more than one.

The format is that of a transaction: each part is preceded by a header (type, whether it is the end,
error), and the last header stands alone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.serialization import GetData, read_buffer, stat_struct
from kazoo.protocol.states import ZnodeStat

_HEADER: Final = struct.Struct("!iBi")
_INTEGER: Final = struct.Struct("!i")
_NO_TYPE: Final = -1

#: Of each node its data and state, or the exception that says why not.
Found = tuple[bytes | None, ZnodeStat] | Exception


@dataclass(frozen=True)
class MultiRead:
    """The nodes of some paths; as requests are in kazoo, it can serialize and deserialize."""

    paths: Sequence[str]
    type: ClassVar = 22

    def serialize(self) -> bytes:
        parts = bytearray()
        for path in self.paths:
            parts += _HEADER.pack(GetData.type, False, -1) + GetData(path, None).serialize()
        return bytes(parts + _HEADER.pack(_NO_TYPE, True, -1))

    @classmethod
    def deserialize(cls, buffer: bytes, offset: int) -> list[Found]:
        found: list[Found] = []
        while True:
            kind, is_end, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if is_end:
                return found
            if kind == GetData.type:
                data, offset = read_buffer(buffer, offset)
                found.append((data, ZnodeStat._make(stat_struct.unpack_from(buffer, offset))))
                offset += stat_struct.size
            else:
                found.append(EXCEPTIONS[_INTEGER.unpack_from(buffer, offset)[0]]())
                offset += _INTEGER.size
