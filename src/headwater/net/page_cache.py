"""Whether a stretch of a file can be sent without waiting for the disk, and how to make it so.

Sending from a file that is not in the page cache blocks the whole event loop for as long as the
disk takes. Linux can be asked: a read that must not wait (RWF_NOWAIT) gives a byte that is cached
and refuses one that is not. A few bytes stand for the whole stretch, since the kernel reads files
in and drops them from memory in long runs. Where the question is not supported, the answer is that
everything is cached: that costs a pause, and never a wrong byte.
"""

from __future__ import annotations

import errno
import os

PROBE_DISTANCE = 256 * 1024
READ_SIZE = 256 * 1024

_NO_WAIT: int = getattr(os, "RWF_NOWAIT", 0)
_probe_buffer = bytearray(1)
_probe_buffers = [_probe_buffer]


def is_cached(descriptor: int, position: int, size: int) -> bool:
    """Whether the first byte, the last, and some between them are in memory."""
    if not _NO_WAIT or size <= 0:
        return True
    last = position + size - 1
    try:
        for probed in range(position, last, PROBE_DISTANCE):
            os.preadv(descriptor, _probe_buffers, probed, _NO_WAIT)
        os.preadv(descriptor, _probe_buffers, last, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    return True


def read_in(descriptor: int, position: int, size: int) -> None:
    """Wait, in a thread, until the disk has delivered the stretch into the page cache."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, size, os.POSIX_FADV_WILLNEED)
    buffers = [bytearray(min(READ_SIZE, size))]
    end = position + size
    while position < end:
        step = os.preadv(descriptor, buffers, position)
        if step == 0:
            return
        position += step
