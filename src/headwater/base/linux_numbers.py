"""Numbers of Linux's that Python names only if the C library did where it was built.

Those that uv installs are built on an old one, so that they run everywhere, and lack these names.
The kernel has had them for a decade, with one number on every processor. Elsewhere they are None.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from types import ModuleType
from typing import Final


def _number(module: ModuleType, name: str, linux: int) -> int | None:
    found = getattr(module, name, linux if sys.platform == "linux" else None)
    return None if found is None else int(found)


#: Locks that belong to an open file, not to a process.
F_OFD_GETLK: Final = _number(fcntl, "F_OFD_GETLK", 36)
F_OFD_SETLK: Final = _number(fcntl, "F_OFD_SETLK", 37)
#: A read that gives what is in memory, or nothing.
RWF_NOWAIT: Final = _number(os, "RWF_NOWAIT", 8)
#: How much a socket takes that has not been sent.
TCP_NOTSENT_LOWAT: Final = _number(socket, "TCP_NOTSENT_LOWAT", 25)
