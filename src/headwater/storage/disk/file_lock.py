"""Locks on files that keep brokers apart, of this process, of others, and of Apache Kafka.

On Linux these are open-file-description locks: unlike flock they conflict with the record locks
that a JVM takes, so that a directory in use by an Apache Kafka is respected, and unlike those they
also keep apart two brokers in the same process. Elsewhere they are flock's.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Final

from headwater.base.linux_numbers import F_OFD_GETLK, F_OFD_SETLK

#: struct flock: type, whence, start, length (0 is all of it), process id; padded to 8.
_FLOCK: Final = "hhqqi0q"


def lock_descriptor(descriptor: int) -> None:
    """Lock without waiting; BlockingIOError or PermissionError if somebody has it."""
    if F_OFD_SETLK is not None:
        fcntl.fcntl(descriptor, F_OFD_SETLK, _whole_file())
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked_elsewhere(descriptor: int) -> bool:
    """Whether somebody else holds the lock; asking takes no lock, if that can be."""
    if F_OFD_GETLK is not None:
        answer = fcntl.fcntl(descriptor, F_OFD_GETLK, _whole_file())
        kind: int = struct.unpack(_FLOCK, answer)[0]
        return kind != fcntl.F_UNLCK
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _whole_file() -> bytes:
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
