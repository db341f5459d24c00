"""Accepts connections on one endpoint, keeps an eye on stuck ones, and closes them in order.

A `Listener` binds every address that its host stands for. It refuses connections above the limits
(those that are refused are closed at once). From time to time it looks for connections on which
nothing has happened for long, or whose peers have left a request or an answer half done.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Self

from headwater.base.threads import RunInThread
from headwater.net.binding import BoundServer, SocketOptions, bind
from headwater.net.connection import Connection
from headwater.net.endpoint import Endpoint, parse_endpoints
from headwater.net.exchange import RequestHandler
from headwater.net.limits import ConnectionLimits

__all__ = ["Endpoint", "Listener", "SocketOptions", "parse_endpoints"]

_logger = logging.getLogger(__name__)

SWEEPS_PER_PERIOD = 3
"""How often it is looked, within a time after which a connection is ended, whether it has been."""
SWEEP_INTERVAL_S_MAX = 10.0


class Listener:
    """An endpoint that accepts connections, and all connections that came through it."""

    def __init__(
        self,
        endpoint: Endpoint,
        handler: RequestHandler,
        limits: ConnectionLimits,
        run_in_thread: RunInThread | None,
    ) -> None:
        self.endpoint = endpoint
        #: In the order in which they came, so that what is done to all is done in one order.
        self.connections: dict[Connection, None] = {}
        self._handler = handler
        self._limits = limits
        self._run_in_thread = run_in_thread
        self._loop = asyncio.get_running_loop()
        self._server: BoundServer | None = None
        self._is_closing = False
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._sweep = self._loop.call_later(self._sweep_interval_s(), self._close_stuck)

    @classmethod
    async def start(
        cls,
        endpoint: Endpoint,
        handler: RequestHandler,
        limits: ConnectionLimits,
        *,
        options: SocketOptions | None = None,
        run_in_thread: RunInThread | None = None,
    ) -> Self:
        """Listen; an address that cannot be had raises an OSError that names it."""
        listener = cls(endpoint, handler, limits, run_in_thread)
        try:
            server = await bind(listener._make_connection, endpoint, options or SocketOptions())
        except BaseException:
            listener._sweep.cancel()
            raise
        listener._server = server
        listener.endpoint = endpoint._replace(port=server.port)
        return listener

    @property
    def port(self) -> int:
        """The port that connections are accepted on, also where any free one was asked for."""
        return self.endpoint.port

    def stop_accepting(self) -> None:
        """Let go of the address; connections that are open stay."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def close(self, grace_s: float) -> None:
        """Answer the requests that have come, for at most that time, and close everything."""
        self.stop_accepting()
        self._is_closing = True
        self._sweep.cancel()
        for connection in list(self.connections):
            connection.finish()
        try:
            async with asyncio.timeout(grace_s):
                await self._all_closed.wait()
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
            await self._all_closed.wait()

    def _make_connection(self) -> Connection:
        return Connection(
            self._handler,
            self._limits,
            listener_name=self.endpoint.listener_name,
            run_in_thread=self._run_in_thread,
            opened=self._add,
            closed=self._remove,
        )

    def _add(self, connection: Connection) -> None:
        self.connections[connection] = None
        self._all_closed.clear()
        if self._is_closing:
            connection.abort()

    def _remove(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if not self.connections:
            self._all_closed.set()

    def _sweep_interval_s(self) -> float:
        limits = self._limits
        periods = (limits.idle_max_s, limits.receive_progress_s, limits.send_progress_s)
        bounded = (period / SWEEPS_PER_PERIOD for period in periods if period > 0)
        return min([SWEEP_INTERVAL_S_MAX, *bounded])

    def _close_stuck(self) -> None:
        now_s = self._loop.time()
        idle_max_s = self._limits.idle_max_s
        for connection in list(self.connections):
            if connection.idle_s(now_s) >= idle_max_s > 0:
                _logger.debug("%s is disconnected: it was idle for too long", connection)
                connection.abort()
            elif stall := connection.stall(now_s):
                connection.drop(stall)
        self._sweep = self._loop.call_later(self._sweep_interval_s(), self._close_stuck)
