"""The broker's listeners, and the gate in front of its dispatcher.

Addresses are taken when the broker begins to start. Requests that come before it is ready wait at
the gate, as many as a connection may have in flight, and go in when it opens, in their order. The
controller is let in before clients are: what it has to tell is what makes a broker ready.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headwater.base.threads import RunInThread
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.connection_limits import make_connection_limits
from headwater.broker.settings.listener_settings import client_endpoints
from headwater.net.exchange import Exchange, RequestHandler
from headwater.net.listener import Endpoint, Listener, SocketOptions
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import api_key_of

#: The controller's message, and what its connection begins with.
_EARLY: Final = frozenset({ApiKey.UPDATE_IMAGE, ApiKey.API_VERSIONS, ApiKey.PROVE_BROKER})


class Listeners:
    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._listeners: list[Listener] = []
        self._dispatch: RequestHandler | None = None
        self._dispatch_early: RequestHandler | None = None
        self._waiting: list[Exchange] = []
        self.limits = make_connection_limits(settings)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where connections are accepted, with the real ports."""
        return [listener.endpoint for listener in self._listeners]

    @property
    def connection_count(self) -> int:
        return self.limits.counters.open

    async def start(self, run_in_thread: RunInThread) -> None:
        """Take all addresses or none; OSError names the one that cannot be had."""
        settings = self._settings
        endpoints = client_endpoints(settings.values)
        options = SocketOptions(
            backlog=settings.integer("socket.listen.backlog.size"),
            send_buffer_bytes=settings.integer("socket.send.buffer.bytes"),
            receive_buffer_bytes=settings.integer("socket.receive.buffer.bytes"),
        )
        try:
            for endpoint in endpoints:
                self._listeners.append(
                    await Listener.start(
                        endpoint,
                        self._receive,
                        self.limits,
                        options=options,
                        run_in_thread=run_in_thread,
                    )
                )
        except OSError:
            await self.close(0)
            raise

    def admit_controller(self, dispatch: RequestHandler) -> None:
        """Let those requests in that bring the broker its first image; the others wait on."""
        self._dispatch_early = dispatch
        self._pass_waiting()

    def open_gate(self, dispatch: RequestHandler) -> None:
        """The broker is ready: hand over what waits, and everything from now on."""
        self._dispatch = dispatch
        self._pass_waiting()

    def _pass_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for exchange in waiting:
            self._receive(exchange)

    def stop_accepting(self) -> None:
        for listener in self._listeners:
            listener.stop_accepting()

    async def close(self, grace_s: float) -> None:
        """Answer what has come, for at most that long, and close all connections."""
        for exchange in self._waiting:
            exchange.disconnect("the broker stops before it was ready")
        self._waiting = []
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + grace_s
        for listener in self._listeners:
            await listener.close(max(0.0, deadline_s - loop.time()))
        self._listeners = []

    def _receive(self, exchange: Exchange) -> None:
        if self._dispatch is not None:
            self._dispatch(exchange)
        elif self._dispatch_early is not None and api_key_of(exchange.frame) in _EARLY:
            self._dispatch_early(exchange)
        else:
            self._waiting.append(exchange)
