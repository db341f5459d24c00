"""An outgoing connection: requests go out, each answer finds the one who waits for it.

The client, followers and coordinators all talk to brokers through a `PeerChannel`. Any number of
requests may be under way at once. A request that is given up, by cancellation or because its time
is over, disturbs no other: its answer is thrown away when it comes. When the connection is lost,
everybody who waits hears it, and the channel stays closed: whoever wants to go on connects anew.

An answer is received into one buffer, and the records in it are views of that buffer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self

from headwater import __version__
from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.net.endpoint import join_address
from headwater.net.frame_memory import KEPT_OF_ANSWERS
from headwater.net.frame_protocol import FrameProtocol
from headwater.net.frame_thread import FrameThread
from headwater.net.peer_errors import (
    PeerTimeoutError,
    PeerUnavailableError,
    UnsupportedVersionError,
)
from headwater.net.peer_session import PeerSession
from headwater.net.plain_socket import duplicate_socket
from headwater.net.sender import Sender
from headwater.wire.api_keys import ApiKey, VersionRange
from headwater.wire.codec import MalformedMessageError
from headwater.wire.messages.api_versions import ApiVersionsResponse
from headwater.wire.schema import Message

__all__ = [
    "OpenConnection",
    "PeerChannel",
    "PeerTimeoutError",
    "PeerUnavailableError",
    "UnsupportedVersionError",
]

RESPONSE_SIZE_MAX: Final = 2**31 - 1
SOFTWARE_NAME: Final = "headwater"

ProtocolFactory = Callable[[], asyncio.BaseProtocol]
#: Opens a connection to a host and a port; TLS and the simulator have their own.
OpenConnection = Callable[
    [ProtocolFactory, str, int], Awaitable[tuple[asyncio.BaseTransport, asyncio.BaseProtocol]]
]


async def open_tcp_connection(
    factory: ProtocolFactory, host: str, port: int
) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
    return await asyncio.get_running_loop().create_connection(factory, host, port)


class PeerChannel(FrameProtocol):
    """A connection to a broker, made by `connect`."""

    __slots__ = (
        "_closed",
        "_drained",
        "_frame_thread",
        "_sender",
        "_session",
        "api_versions",
        "is_closed",
        "peer",
    )

    _sender: Sender

    def __init__(self, peer: str, client_id: str | None) -> None:
        super().__init__(asyncio.get_running_loop(), RESPONSE_SIZE_MAX, KEPT_OF_ANSWERS)
        #: host:port, for people.
        self.peer = peer
        self.is_closed = False
        #: What the peer said about itself: features as well as versions.
        self.api_versions = ApiVersionsResponse()
        self._session: PeerSession[asyncio.Future[Any]] = PeerSession(peer, client_id)
        self._drained = asyncio.Event()
        self._drained.set()
        self._closed = asyncio.Event()
        self._frame_thread: FrameThread | None = None

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None = SOFTWARE_NAME,
        timeout_s: float = 10.0,
        open_connection: OpenConnection = open_tcp_connection,
    ) -> Self:
        """Connect and learn which versions the peer speaks; PeerUnavailableError if it fails."""
        peer = join_address(host, port)
        channel = cls(peer, client_id)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await open_connection(lambda: channel, host, port)
                await channel._negotiate()
        except OSError as error:
            channel._abort()
            is_late = isinstance(error, TimeoutError) and limit.expired()
            reason = f"no answer within {timeout_s:g} s" if is_late else _reason(error)
            raise PeerUnavailableError(f"Cannot connect to {peer}: {reason}.") from error
        except PeerUnavailableError as error:
            # Somebody listens there who has no answer to a client's first question.
            channel._abort()
            raise PeerUnavailableError(
                f"Cannot connect to {peer}: it ends the connection instead of answering; is it a "
                "Kafka broker, without TLS?"
            ) from error
        except BaseException:
            channel._abort()
            raise
        return channel

    @property
    def versions(self) -> dict[int, VersionRange]:
        """What the peer serves, by API key."""
        return self._session.versions

    def learn_inter_broker_versions(self, versions: Mapping[int, VersionRange]) -> None:
        """What the peer, which is a broker as this program is, serves to brokers alone."""
        self._session.learn_inter_broker_versions(versions)

    @property
    def pending_count(self) -> int:
        """Requests whose answers have not come."""
        return self._session.pending_count

    @property
    def bytes_out(self) -> int:
        return self._sender.bytes_out

    def version_of(self, message: Message) -> int:
        """The version in which `send` would send it."""
        return self._session.choose_version(message)

    async def send(self, message: Message, *, version: int | None = None, timeout_s: float) -> Any:
        """Send a request and return its response, a message of the same API."""
        future = self.send_nowait(message, version=version)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return await future
        except TimeoutError:
            if not limit.expired():
                raise
            name = ApiKey(message.API_KEY).name
            raise PeerTimeoutError(
                f"{self.peer} has not answered a {name} request within {timeout_s:g} s."
            ) from None

    def send_nowait(self, message: Message, *, version: int | None = None) -> asyncio.Future[Any]:
        """Send a request; the future gets its response. It may be cancelled at any time."""
        self._check_open()
        future: asyncio.Future[Any] = self._loop.create_future()
        chosen = self._session.choose_version(message, version)
        self._sender.send(self._session.request(message, chosen, future))
        return future

    def send_without_answer(self, message: Message, *, version: int | None = None) -> None:
        """Send a request that is not answered, as produce requests with acks=0 are."""
        self._check_open()
        chosen = self._session.choose_version(message, version)
        self._sender.send(self._session.request(message, chosen, None))

    async def drain(self) -> None:
        """Wait until the peer has taken what was sent; for those who send without an answer."""
        await self._drained.wait()
        self._check_open()

    def receive_in_thread(self) -> None:
        """From now on receive on a thread of its own, if there is a plain socket to receive from.

        For those who wait for large answers while another thread computes: see `FrameThread`.
        """
        check(not self.pending_count, "a thread would receive the end of what the loop began")
        duplicate = duplicate_socket(self.transport)
        if duplicate is None:
            return
        self.transport.pause_reading()
        self._frame_thread = FrameThread(
            self._loop,
            duplicate,
            name=f"{threading.current_thread().name}-from-{self.peer}",
            frame_size_max=self.frame_size_max,
            limits=KEPT_OF_ANSWERS,
            receive=self.receive_frame,
            refuse=self.refuse_frame,
            lose=self._thread_ended,
        )

    def _thread_ended(self, error: OSError | None) -> None:
        self._disconnected(error)
        self.transport.abort()

    def give_up(self, error: KafkaError) -> None:
        """Close the connection because of an error, which is what whoever waits gets to hear."""
        self._lose(error)
        self._end()

    async def close(self) -> None:
        """Close the connection; whoever still waits hears that it is lost."""
        self._abort()
        await self._closed.wait()

    def _check_open(self) -> None:
        if self.is_closed:
            raise PeerUnavailableError(f"The connection to {self.peer} is closed.")

    def _abort(self) -> None:
        if hasattr(self, "transport"):
            self._lose(PeerUnavailableError(f"The connection to {self.peer} was closed."))
            self._end()

    def _end(self) -> None:
        if self._frame_thread is not None:
            self._frame_thread.close()
        self.transport.abort()

    async def _negotiate(self) -> None:
        request, version = self._session.first_versions_request(SOFTWARE_NAME, __version__)
        again: int | None = version
        for _ in range(2):
            future = self._loop.create_future()
            self._sender.send(self._session.request(request, version, future))
            response: ApiVersionsResponse = await future
            again = self._session.learn_versions(response)
            if again is None:
                self.api_versions = response
                return
            version = again
        raise UnsupportedVersionError(f"{self.peer} does not say what it speaks.")

    # What the transport and the layers below call.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._sender = Sender(
            self._loop,
            self.transport,
            run_in_thread=None,
            set_busy=self._set_busy,
            fail=self._fail,
        )

    def connection_lost(self, exception: Exception | None) -> None:
        self._disconnected(exception)
        self._sender.close()
        if self._frame_thread is not None:
            self._frame_thread.close()
        self._closed.set()

    def _disconnected(self, exception: Exception | None) -> None:
        reason = "" if exception is None else f": {_reason(exception)}"
        self._lose(PeerUnavailableError(f"The connection to {self.peer} was lost{reason}."))

    def pause_writing(self) -> None:
        self._sender.pause_writing()

    def resume_writing(self) -> None:
        self._sender.resume_writing()

    def receive_frame(self, frame: memoryview) -> None:
        if self.is_closed:
            # A thread had received it before.
            return
        try:
            answer = self._session.response(frame)
            if not answer.waiter.done():
                try:
                    answer.waiter.set_result(answer.read())
                except MalformedMessageError as error:
                    answer.waiter.set_exception(error)
                    raise
        except MalformedMessageError as error:
            self._fail(f"it sent something that cannot be read: {error}")

    def refuse_frame(self, size: int) -> None:
        self._fail(f"it announces a response of {size} bytes")

    def _set_busy(self, is_busy: bool) -> None:
        if is_busy:
            self._drained.clear()
        else:
            self._drained.set()

    def _fail(self, reason: str) -> None:
        self.give_up(PeerUnavailableError(f"The connection to {self.peer} was given up: {reason}."))

    def _lose(self, error: KafkaError) -> None:
        """Let everybody hear who waits; only the first error counts."""
        if self.is_closed:
            return
        self.is_closed = True
        self._drained.set()
        for waiter in self._session.take_waiters():
            if not waiter.done():
                # One each: an exception that many raise would collect all their tracebacks.
                waiter.set_exception(type(error)(error.detail))


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
