"""Saves every task that runs in Python the 40 ms for which TCP would hold back its data.

Spark sends a task to its Python worker in two pieces: the code, then the data. Its kernel keeps the
second until the first is acknowledged (Nagle's algorithm), and the worker's kernel waits with that
for an answer to send it along with (delayed acknowledgement), which does not come before the data
is there. What is unpickled as a part of the code runs between the two, and can have the first piece
acknowledged. Spark's `spark.python.unix.domain.socket.enabled` would do as well, but is off, and a
connector cannot turn it on.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Any

from pyspark import TaskContext


class PromptTask:
    """A part of the code of a task."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if TaskContext.get() is not None:
            acknowledge_at_once()


def acknowledge_at_once() -> None:
    """Acknowledge what this process was sent over TCP; on Linux, where it can be asked for.

    Spark does not tell which of the files is the socket to it, and the others come to no harm.
    """
    # Python would put all sockets into the mode of such a time limit.
    if not hasattr(socket, "TCP_QUICKACK") or socket.getdefaulttimeout() is not None:
        return
    for file_number in _open_files():
        # Not a socket, or not of TCP, or gone, as the one that the list was read from.
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(file_number).st_mode):
                _acknowledge(file_number)


def _open_files() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []  # Somewhere without /proc.


def _acknowledge(file_number: int) -> None:
    borrowed = socket.socket(fileno=file_number)
    try:
        borrowed.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    finally:
        borrowed.detach()
