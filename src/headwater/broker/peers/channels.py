"""The way to the brokers of the cluster, this one among them.

A coordinator asks the leaders of partitions, a leader asks coordinators, and everybody asks the
controller; any of them may be this same broker. Then the request goes to the handler of its API
without a socket and without bytes. To another broker there is one connection, made when it is first
needed, at the address that the cluster image has; when it was lost, or the broker has another
address, the next request makes a new one. A broker that the cluster has given up may be silent
without an end, so whoever waits for it hears of that (`follow`). Whoever asks decides whether to
ask again. Followers, who fetch all the time, have connections of their own (`open`), and so have
the controller's messages, behind which others would wait (`send_update`). Nothing is sent on any of
them before both sides have proven to be the brokers that they say they are (`broker_proof`).

What goes wrong on the way is a `KafkaError`: `PeerUnavailableError`, or `PeerTimeoutError` where an
answer took too long. What the answer says is in the answer.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import Any, Final, cast

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.forwarding import answer
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import NO_CONTROLLER, BrokerInfo, EndpointInfo
from headwater.net.connection import Connection
from headwater.net.endpoint import is_every_address
from headwater.net.peer_channel import PeerChannel
from headwater.net.peer_errors import (
    PeerTimeoutError,
    PeerUnavailableError,
    UnsupportedVersionError,
)
from headwater.net.peer_identity import PeerIdentity
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.update_image import UpdateImageRequest, UpdateImageResponse
from headwater.wire.codec import MalformedMessageError
from headwater.wire.frames import RequestHeader
from headwater.wire.schema import Message

_logger = logging.getLogger(__name__)

_LOCAL_HOST: Final = "localhost"
#: A broker may have thousands of logs to make.
_UPDATE_TIMEOUT_S: Final = 120.0


class _Purpose(Enum):
    """What a connection is for, where one must not wait behind the other."""

    QUESTIONS = "questions"
    UPDATES = "updates"


_LinkKey = tuple[int, _Purpose]


class OwnConnection:
    """What a handler may ask of a connection, where the broker itself is the client."""

    __slots__ = ("identity", "listener_name", "local", "peer", "state")

    def __init__(self, node_id: int) -> None:
        self.identity = PeerIdentity(node_id)
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
        self._links: dict[_LinkKey, _Link] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._own_connection = OwnConnection(context.node_id)
        self._client_id = f"broker-{context.node_id}"

    async def send(
        self, broker_id: int, request: Message, timeout_s: float, version: int | None = None
    ) -> Any:
        """The broker's answer, a message of the same API; in the highest version of both sides."""
        if broker_id == self._context.node_id:
            return await self._ask_own(request, timeout_s, version)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                endpoint = self._endpoint(broker_id)
                channel = await self._channel((broker_id, _Purpose.QUESTIONS), endpoint)
                return await channel.send(request, version=version, timeout_s=timeout_s)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._late(f"Broker {broker_id}", request, timeout_s) from None

    async def send_to_controller(
        self, request: Message, timeout_s: float, version: int | None = None
    ) -> Any:
        """The controller's answer; NOT_CONTROLLER while nobody is known to be it."""
        controller_id = self._context.member.controller_id
        if controller_id == NO_CONTROLLER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "A controller is being elected.")
        return await self.send(controller_id, request, timeout_s, version)

    async def send_update(
        self, broker: BrokerInfo, request: UpdateImageRequest
    ) -> UpdateImageResponse:
        """Bring a broker the image of the controller, which this broker is."""
        if broker.broker_id == self._context.node_id:
            # Shielded: a controller that is deposed meanwhile does not undo half of a change.
            receiving = self._context.tasks.spawn(self._context.member.receive(request))
            return await asyncio.shield(receiving)
        endpoint = self._endpoint_of(broker)
        key = (broker.broker_id, _Purpose.UPDATES)
        try:
            async with asyncio.timeout(_UPDATE_TIMEOUT_S) as limit:
                channel = await self._channel(key, endpoint)
                response: UpdateImageResponse = await channel.send(
                    request, timeout_s=_UPDATE_TIMEOUT_S
                )
                return response
        except TimeoutError:
            if not limit.expired():
                raise
            late = self._late(f"Broker {broker.broker_id}", request, _UPDATE_TIMEOUT_S)
            raise late from None

    async def open(self, broker_id: int) -> PeerChannel:
        """A connection of one's own, which its owner closes."""
        return await self._open(broker_id, self._endpoint(broker_id))

    def follow(self, change: ImageChange) -> None:
        """Let go of brokers that are gone, or elsewhere; who waits for them has waited enough."""
        for key, link in sorted(self._links.items(), key=_order):
            broker_id, _ = key
            if broker_id in change.changed_brokers:
                broker = change.image.brokers.get(broker_id)
                if broker is None or link.endpoint not in broker.endpoints:
                    self._drop(key, link)

    async def close(self) -> None:
        """Close all connections; who waits for an answer hears that they are lost."""
        self._is_closed = True
        links, self._links = list(self._links.values()), {}
        for link in links:
            await link.close()
        await asyncio.gather(*self._closing)

    # -- this broker -----------------------------------------------------------------------------

    async def _ask_own(self, request: Message, timeout_s: float, version: int | None) -> Any:
        api_key = ApiKey(request.API_KEY)
        handler = self._context.api_table.get(api_key)
        if not isinstance(handler, ApiHandler):
            raise UnsupportedVersionError(f"This broker does not serve {api_key.name} to itself.")
        if version is None:
            version = min(handler.card.versions.highest, request.VERSIONS.highest)
        # There is no frame, so nothing begins anywhere in it.
        header = RequestHeader(api_key, version, 0, self._client_id, body_position=0)
        context = RequestContext(self._context, header, cast(Connection, self._own_connection))
        try:
            async with asyncio.timeout(timeout_s) as limit:
                response = await answer(handler, request, context)
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
        context.record_response(response)
        return response

    @staticmethod
    def _late(who: str, request: Message, timeout_s: float) -> PeerTimeoutError:
        name = ApiKey(request.API_KEY).name
        return PeerTimeoutError(f"{who} has not answered a {name} request within {timeout_s:g} s.")

    # -- other brokers ---------------------------------------------------------------------------

    async def _channel(self, key: _LinkKey, endpoint: EndpointInfo) -> PeerChannel:
        if self._is_closed:
            raise PeerUnavailableError("This broker stops.")
        link = self._links.get(key)
        if link is not None and (link.endpoint != endpoint or not link.is_usable):
            self._drop(key, link)
            link = None
        if link is None:
            opening = asyncio.ensure_future(self._open(key[0], endpoint))
            link = self._links[key] = _Link(endpoint, opening)
        try:
            # Shielded, because others may wait for the same connection.
            return await asyncio.shield(link.opening)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if link.opening.cancelled() and task is not None and not task.cancelling():
                # It is not this task that was to end: the broker was given up.
                raise PeerUnavailableError(f"Broker {key[0]} is not there any more.") from None
            raise

    async def _open(self, broker_id: int, endpoint: EndpointInfo) -> PeerChannel:
        timeout_s = self._context.settings.integer("socket.connection.setup.timeout.ms") / 1000
        channel = await PeerChannel.connect(
            # Who is on every address of a machine without a name is on this one.
            _LOCAL_HOST if is_every_address(endpoint.host) else endpoint.host,
            endpoint.port,
            client_id=self._client_id,
            timeout_s=timeout_s,
        )
        try:
            await self._context.proof.exchange(channel, broker_id, timeout_s)
        except MalformedMessageError as error:
            # Whoever it is, it is no broker; those who ask are prepared for one that is not there.
            await channel.close()
            raise PeerUnavailableError(f"{channel.peer} is no broker: {error}") from error
        except BaseException:
            await channel.close()
            raise
        return channel

    def _endpoint(self, broker_id: int) -> EndpointInfo:
        broker = self._context.image.brokers.get(broker_id)
        if broker is None:
            raise PeerUnavailableError(f"Broker {broker_id} is not there.")
        return self._endpoint_of(broker)

    def _endpoint_of(self, broker: BrokerInfo) -> EndpointInfo:
        """Where another broker is reached: at the listener for brokers, or else its first."""
        if not broker.endpoints:
            raise PeerUnavailableError(f"Broker {broker.broker_id} does not listen.")
        wanted = self._context.settings.optional_text("inter.broker.listener.name")
        for endpoint in broker.endpoints:
            if endpoint.listener_name == wanted:
                return endpoint
        return broker.endpoints[0]

    def _drop(self, key: _LinkKey, link: _Link) -> None:
        del self._links[key]
        closing = asyncio.ensure_future(link.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _order(item: tuple[_LinkKey, _Link]) -> tuple[int, str]:
    (broker_id, purpose), _ = item
    return broker_id, purpose.value
