"""A small HTTP server for pages that machines read, such as metrics.

It answers GET and HEAD, one request on a connection, and closes that. What else a peer may send,
garbage, too much, or nothing for long, costs it the connection and nobody else anything: a request
is at most `REQUEST_BYTES_MAX` long and has to be there after `REQUEST_S_MAX`, a connection lives at
most `CONNECTION_S_MAX`, whatever the peer reads or writes, and there are at most `CONNECTIONS_MAX`.

Somebody who asks must get through all the same. So a newcomer is never turned away: if there are
too many, the one goes that has been there longest, of the host that has most, and there rather one
that has not asked than one that has. So a request that comes at once is answered whatever others
do: before its turn to go comes, as many more would have to connect.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Self, cast

from headwater.net.binding import BoundServer, SocketOptions, bind
from headwater.net.endpoint import Endpoint

_logger = logging.getLogger(__name__)

REQUEST_BYTES_MAX: Final = 8192
CONNECTIONS_MAX: Final = 64
CONNECTION_S_MAX: Final = 30.0
REQUEST_S_MAX: Final = 5.0

_PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class HttpAnswer(NamedTuple):
    """What is sent for a request."""

    body: bytes
    status: int = 200
    content_type: str = _PLAIN


#: Answers a path, or raises; None where there is nothing.
PageHandler = Callable[[str], Awaitable[HttpAnswer | None]]


class HttpEndpoint:
    """Listens on one address and answers with what the handler has for a path."""

    def __init__(self, handler: PageHandler) -> None:
        self.handler = handler
        #: In the order in which they came.
        self.connections: dict[HttpConnection, None] = {}
        self._server: BoundServer | None = None

    @classmethod
    async def start(cls, host: str, port: int, handler: PageHandler) -> Self:
        """Listen; an address that cannot be had raises an OSError that names it."""
        endpoint = cls(handler)
        address = Endpoint("HTTP", host, port)
        options = SocketOptions(send_buffer_bytes=-1, receive_buffer_bytes=-1)
        endpoint._server = await bind(lambda: HttpConnection(endpoint), address, options)
        return endpoint

    @property
    def port(self) -> int:
        """The port that is listened on, 0 when it is closed."""
        return 0 if self._server is None else self._server.port

    def add(self, connection: HttpConnection) -> None:
        """A newcomer; another may have to go for it."""
        if len(self.connections) >= CONNECTIONS_MAX:
            self._end_one()
        self.connections[connection] = None

    def remove(self, connection: HttpConnection) -> None:
        self.connections.pop(connection, None)

    def _end_one(self) -> None:
        count_by_host = Counter(each.host for each in self.connections)

        def standing(connection: HttpConnection) -> tuple[int, bool]:
            return count_by_host[connection.host], not connection.has_request

        # Of those that stand alike the first, which is the oldest.
        unwanted = max(self.connections, key=standing)
        self.remove(unwanted)
        unwanted.abort()

    def close(self) -> None:
        """Let go of the address and of all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One peer, from its request to the end of the answer."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self._endpoint = endpoint
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.host = ""
        #: Whether it has asked for something.
        self.has_request = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if isinstance(peer, tuple) else ""
        self._endpoint.add(self)
        self._end_after(REQUEST_S_MAX)

    def _end_after(self, time_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(time_s, self.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self._endpoint.remove(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        """Close without waiting for the peer."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.has_request:
            return
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 and len(self._received) <= REQUEST_BYTES_MAX:
            return
        self.has_request = True
        self._end_after(CONNECTION_S_MAX)
        if 0 <= end <= REQUEST_BYTES_MAX:
            self._begin(bytes(self._received[:end]))
        else:
            self._send(HttpAnswer(b"The request is too long.\n", 431), has_body=True)
        self._received.clear()

    def _begin(self, head: bytes) -> None:
        parts = head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            self._send(HttpAnswer(b"This is no HTTP request.\n", 400), has_body=True)
            return
        method, target, _ = parts
        if method not in (b"GET", b"HEAD"):
            self._send(HttpAnswer(b"Only GET and HEAD are answered.\n", 405), has_body=True)
            return
        path = target.split(b"?", 1)[0].decode("latin-1")
        answering = self._answer(path, has_body=method == b"GET")
        self._task = asyncio.get_running_loop().create_task(answering)

    async def _answer(self, path: str, *, has_body: bool) -> None:
        try:
            answer = await self._endpoint.handler(path)
        except Exception:
            _logger.exception("The page %r could not be made", path)
            answer = HttpAnswer(b"The page could not be made.\n", 500)
        self._send(answer or HttpAnswer(b"There is no such page.\n", 404), has_body=has_body)

    def _send(self, answer: HttpAnswer, *, has_body: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        head = (
            f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
            f"Content-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(answer.body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1") + (answer.body if has_body else b""))
        # The deadline stands: a peer that does not read its answer is cut off then.
        self._transport.close()
