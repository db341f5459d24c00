"""Opens the sockets that a listener accepts connections on.

A host may stand for several addresses: a name for all that it resolves to, an empty host for every
interface in both versions of IP. All of them get the same port, also when any free one is wanted.
Sockets are opened by the event loop, so that one with a network of its own has a say.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import NamedTuple

from headwater.base.linux_numbers import TCP_NOTSENT_LOWAT
from headwater.net.endpoint import Endpoint, join_address

ProtocolFactory = Callable[[], asyncio.BaseProtocol]

FREE_PORT_ATTEMPTS_MAX = 20
UNSENT_BYTES_MAX = 256 * 1024
"""A socket takes no more while so much waits for the peer to make room.

Without this bound the kernel takes megabytes for each peer that asks and does not read, and the
broker makes answers until they are full. What is on its way to a peer that reads does not count.
"""


class SocketOptions(NamedTuple):
    """Settings of Kafka's about sockets; a buffer size of -1 leaves it to the system."""

    #: socket.listen.backlog.size
    backlog: int = 50
    #: socket.send.buffer.bytes and socket.receive.buffer.bytes
    send_buffer_bytes: int = 102400
    receive_buffer_bytes: int = 102400


class BoundServer(NamedTuple):
    """What accepts connections, and where."""

    server: asyncio.Server
    port: int

    def close(self) -> None:
        """Let go of the address; connections that were accepted stay."""
        self.server.close()


async def bind(factory: ProtocolFactory, endpoint: Endpoint, options: SocketOptions) -> BoundServer:
    """Listen on all addresses of an endpoint; OSError names the endpoint and the reason."""
    try:
        for attempt in range(FREE_PORT_ATTEMPTS_MAX):
            try:
                return await _bind_all(factory, endpoint, options)
            except OSError as error:
                # A port that is free on one address may be taken on another: try the next.
                is_last = attempt == FREE_PORT_ATTEMPTS_MAX - 1
                if endpoint.port or is_last or error.errno != errno.EADDRINUSE:
                    raise
        raise OSError(errno.EADDRINUSE, "no port is free on all addresses")
    except OSError as error:
        address = join_address(endpoint.host, endpoint.port)
        # From 3.13 on asyncio passes over addresses that the machine does not have, and if there
        # was no other it says so without a number.
        number = errno.EADDRNOTAVAIL if error.errno is None else error.errno
        raise OSError(number, f"Cannot listen on {address}: {_reason(error, number)}.") from error


async def _bind_all(
    factory: ProtocolFactory, endpoint: Endpoint, options: SocketOptions
) -> BoundServer:
    loop = asyncio.get_running_loop()
    host = endpoint.host or None
    server = await loop.create_server(factory, host, endpoint.port, backlog=options.backlog)
    ports = [opened.getsockname()[1] for opened in server.sockets]
    if len(set(ports)) > 1:
        # Each address got a free port of its own.
        server.close()
        server = await loop.create_server(factory, host, ports[0], backlog=options.backlog)
    # Accepted sockets inherit these.
    for opened in server.sockets:
        for level, name, size in (
            (socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes),
            (socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes),
            (socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX),
        ):
            if size > 0 and name is not None and hasattr(opened, "setsockopt"):
                opened.setsockopt(level, name, size)
    return BoundServer(server, ports[0])


def _reason(error: OSError, number: int) -> str:
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    known = {
        errno.EADDRINUSE: "the port is in use by another program",
        errno.EADDRNOTAVAIL: "this machine does not have that address",
        errno.EACCES: "this user may not use that port",
    }
    return known.get(number) or os.strerror(number)
