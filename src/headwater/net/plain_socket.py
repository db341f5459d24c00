"""A transport's socket, used past the transport: for sendfile, and for bytes that go before one.

This is right only while the transport itself keeps nothing back and is told to write nothing. The
descriptor is a duplicate, because loops refuse to watch one that a transport owns; it is made when
it is first needed, so that connections that never get a region of a file have only one descriptor.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Self

from headwater.net.region import Buffer

_MORE_FOLLOWS: int = getattr(socket, "MSG_MORE", 0)


def duplicate_socket(transport: asyncio.Transport) -> socket.socket | None:
    """Another descriptor of a transport's socket.

    None if there is none, or it is encrypted, or no descriptor is left to be had.
    """
    used = transport.get_extra_info("socket")
    if used is None or transport.get_extra_info("sslcontext") is not None:
        return None
    try:
        descriptor = os.dup(used.fileno())
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return None
        raise
    return socket.socket(used.family, used.type, used.proto, fileno=descriptor)


class PlainSocket:
    """A duplicate of a socket that is not encrypted."""

    __slots__ = ("_is_watched", "_loop", "_socket", "descriptor")

    def __init__(self, loop: asyncio.AbstractEventLoop, owned: socket.socket) -> None:
        self._loop = loop
        self._socket = owned
        self._is_watched = False
        self.descriptor = owned.fileno()

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> Self | None:
        """None if the transport has no socket, or changes the bytes on their way to it."""
        duplicate = duplicate_socket(transport)
        return None if duplicate is None else cls(loop, duplicate)

    def send_ahead(self, data: Buffer) -> int:
        """Send bytes that more will follow; how many were taken, 0 if the socket is full.

        The kernel waits for what follows, so that a header does not become a packet of its own.
        """
        try:
            return self._socket.send(data, _MORE_FOLLOWS)
        except BlockingIOError:
            return 0

    def call_when_ready(self, callback: Callable[[], None]) -> None:
        """Call once, when the socket takes bytes again."""
        self._is_watched = True
        self._loop.add_writer(self._socket, self._ready, callback)

    def _ready(self, callback: Callable[[], None]) -> None:
        self._stop_watching()
        callback()

    def _stop_watching(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_writer(self._socket)

    def close(self) -> None:
        self._stop_watching()
        self._socket.close()
