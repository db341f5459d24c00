"""Whether a stretch of a file can be sent without waiting for the disk, and how to make it so.

Sending from a file that is not in the page cache blocks the whole event loop for as long as the
disk takes. Linux can be asked: a read that must not wait (RWF_NOWAIT) gives a byte that is cached
and refuses one that is not. A few bytes stand for the whole stretch, since the kernel reads files
in and drops them from memory in long runs. Where the question is not supported, the answer is that
everything is cached: that costs a pause, and never a wrong byte.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Final

from headwater.base.linux_numbers import RWF_NOWAIT

PROBE_DISTANCE = 256 * 1024
READ_SIZE = 256 * 1024

#: Reads a byte at a position of a descriptor; BlockingIOError if that would have to wait.
Probe = Callable[[int, int], object]


class _IoVec(ctypes.Structure):
    """struct iovec of preadv2."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


def library_probe(no_wait: int) -> Probe | None:
    """Asks the C library that runs, for a Python whose own calls do not know how to."""
    preadv2 = getattr(ctypes.CDLL(None, use_errno=True), "preadv2", None)
    if preadv2 is None:
        return None
    preadv2.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_int)
    preadv2.restype = ctypes.c_ssize_t
    byte = ctypes.create_string_buffer(1)
    vector = _IoVec(ctypes.addressof(byte), 1)
    address = ctypes.addressof(vector)

    def probe(descriptor: int, position: int, _keep: object = (byte, vector)) -> None:
        if preadv2(descriptor, address, 1, position, no_wait) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return probe


def _find_probe() -> Probe | None:
    if RWF_NOWAIT is None:
        return None
    if not hasattr(os, "RWF_NOWAIT"):
        return library_probe(RWF_NOWAIT)
    no_wait, buffers = RWF_NOWAIT, [bytearray(1)]
    return lambda descriptor, position: os.preadv(descriptor, buffers, position, no_wait)


_probe: Final = _find_probe()


def is_cached(descriptor: int, position: int, size: int) -> bool:
    """Whether the first byte, the last, and some between them are in memory."""
    if _probe is None or size <= 0:
        return True
    last = position + size - 1
    try:
        for probed in range(position, last, PROBE_DISTANCE):
            _probe(descriptor, probed)
        _probe(descriptor, last)
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
