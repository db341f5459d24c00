"""The way to the brokers of the cluster, this one among them.

A coordinator asks the leaders of partitions, and a leader asks coordinators; either may be this
same broker. Then the request goes to the handler of its API without a socket and without bytes.
To another broker there is one connection, made when it is first needed, at the address that the
cluster image has; when it was lost, or the broker has another address, the next request makes a
new one. Whoever asks decides whether to ask again.

What goes wrong on the way is a `KafkaError`: `PeerUnavailableError`, or `PeerTimeoutError` where an
answer took too long. What the answer says is in the answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.api_handler import ApiHandler
from headwater.broker.context import BrokerContext, RequestContext
from headwater.cluster.image import EndpointInfo
from headwater.net.connection import Connection
from headwater.net.peer_channel import PeerChannel
from headwater.net.peer_errors import (
    PeerTimeoutError,
    PeerUnavailableError,
    UnsupportedVersionError,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.schema import Message

_logger = logging.getLogger(__name__)

_LOCAL_HOST: Final = "localhost"


class OwnConnection:
    """What a handler may ask of a connection, where the broker itself is the client."""

    __slots__ = ("listener_name", "local", "peer", "state")

    def __init__(self) -> None:
        self.listener_name = ""
        self.local = ("", 0)
        self.peer = ("", 0)
        self.state: dict[str, object] = {}


class _Link:
    """A connection to another broker, from the moment it is being made."""

    __slots__ = ("endpoint", "opening")

    def __init__(self, endpoint: EndpointInfo, opening: asyncio.Task[PeerChannel]) -> None:
        self.endpoint = endpoint
        self.opening = opening

    @property
    def is_usable(self) -> bool:
        if not self.opening.done():
            return True
        return (
            not self.opening.cancelled()
            and self.opening.exception() is None
            and not self.opening.result().is_closed
        )

    async def close(self) -> None:
        if not self.opening.done():
            self.opening.cancel()
        results = await asyncio.gather(self.opening, return_exceptions=True)
        for result in results:
            if isinstance(result, PeerChannel):
                await result.close()


class BrokerChannels:
    """One for each broker; its owner is the event loop."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._links: dict[int, _Link] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._own_connection = OwnConnection()
        self._client_id = f"broker-{context.node_id}"

    async def send(self, broker_id: int, request: Message, timeout_s: float) -> Any:
        """The broker's answer, a message of the same API, in the highest version of both sides."""
        if broker_id == self._context.node_id:
            return await self._ask_own(request, timeout_s)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                channel = await self._channel(broker_id)
                return await channel.send(request, timeout_s=timeout_s)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._late(f"Broker {broker_id}", request, timeout_s) from None

    async def close(self) -> None:
        """Close all connections; who waits for an answer hears that they are lost."""
        self._is_closed = True
        links, self._links = list(self._links.values()), {}
        for link in links:
            await link.close()
        await asyncio.gather(*self._closing)

    # -- this broker -----------------------------------------------------------------------------

    async def _ask_own(self, request: Message, timeout_s: float) -> Any:
        api_key = ApiKey(request.API_KEY)
        handler = self._context.api_table.get(api_key)
        if not isinstance(handler, ApiHandler):
            raise UnsupportedVersionError(f"This broker does not serve {api_key.name} to itself.")
        context = RequestContext(
            self._context,
            api_key=api_key,
            api_version=min(handler.versions.highest, request.VERSIONS.highest),
            client_id=self._client_id,
            correlation_id=0,
            connection=cast(Connection, self._own_connection),
        )
        try:
            async with asyncio.timeout(timeout_s) as limit:
                response = await handler.handle(request, context)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._late("This broker", request, timeout_s) from None
        except KafkaError as error:
            context.record_error(error.code)
            raise
        except Exception as error:
            _logger.exception("%s failed", api_key.name)
            context.record_error(ErrorCode.UNKNOWN_SERVER_ERROR)
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"The broker failed to handle {api_key.name}."
            ) from error
        context.record_answer()
        return response

    @staticmethod
    def _late(who: str, request: Message, timeout_s: float) -> PeerTimeoutError:
        name = ApiKey(request.API_KEY).name
        return PeerTimeoutError(f"{who} has not answered a {name} request within {timeout_s:g} s.")

    # -- other brokers ---------------------------------------------------------------------------

    async def _channel(self, broker_id: int) -> PeerChannel:
        if self._is_closed:
            raise PeerUnavailableError("This broker stops.")
        endpoint = self._endpoint(broker_id)
        link = self._links.get(broker_id)
        if link is not None and (link.endpoint != endpoint or not link.is_usable):
            self._drop(broker_id, link)
            link = None
        if link is None:
            opening = asyncio.ensure_future(self._open(endpoint))
            link = self._links[broker_id] = _Link(endpoint, opening)
        # Shielded, because others may wait for the same connection.
        return await asyncio.shield(link.opening)

    async def _open(self, endpoint: EndpointInfo) -> PeerChannel:
        return await PeerChannel.connect(
            endpoint.host or _LOCAL_HOST,
            endpoint.port,
            client_id=self._client_id,
            timeout_s=self._context.settings.integer("socket.connection.setup.timeout.ms") / 1000,
        )

    def _endpoint(self, broker_id: int) -> EndpointInfo:
        """Where another broker is reached: at the listener for brokers, or else its first."""
        broker = self._context.image.brokers.get(broker_id)
        if broker is None or not broker.endpoints:
            raise PeerUnavailableError(f"Broker {broker_id} is not there.")
        wanted = self._context.settings.optional_text("inter.broker.listener.name")
        for endpoint in broker.endpoints:
            if endpoint.listener_name == wanted:
                return endpoint
        return broker.endpoints[0]

    def _drop(self, broker_id: int, link: _Link) -> None:
        del self._links[broker_id]
        closing = asyncio.ensure_future(link.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
