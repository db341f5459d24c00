"""The connection to a whole cluster: one channel per broker, made when first needed, and metadata.

A cluster is found through any of the bootstrap servers and is then addressed by broker ids. The
first contact fails at once if nobody is there, because then the address is wrong or the cluster is
down and a person should know. Later losses are the network's ordinary weather: `retrying` repeats
what may be repeated, after a pause and with fresh metadata, until a deadline.

Owned by one event loop. Channels are kept by address, so a bootstrap server that calls itself by
the same address is connected to only once. A broker answers the requests of a connection in order,
so what may wait there for long has a connection of its own: see `Lane`.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from enum import Enum
from types import TracebackType
from typing import Final, Self, TypeVar

from headwater.base.errors import KafkaError
from headwater.client.connection.bootstrap import Address, parse_bootstrap
from headwater.client.connection.cluster_metadata import NO_LEADER, ClusterMetadata, TopicInfo
from headwater.client.connection.retry import Deadline, RetryPolicy, may_retry
from headwater.client.errors import (
    BrokerUnreachableError,
    ClientClosedError,
    DeadlineError,
    NoBrokerError,
    UnknownBrokerError,
    refusal,
)
from headwater.net.peer_channel import (
    PeerChannel,
    PeerTimeoutError,
    PeerUnavailableError,
    UnsupportedVersionError,
)
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from headwater.wire.schema import Message

Answer = TypeVar("Answer", bound=Message)
Result = TypeVar("Result")

#: `default.api.timeout.ms` and `socket.connection.setup.timeout.ms` of Kafka's clients are like it.
TIMEOUT_S: Final = 30.0
CONNECT_TIMEOUT_S: Final = 10.0
CLIENT_ID: Final = "headwater"

Connect = Callable[[Address, str, float], Awaitable[PeerChannel]]


class Lane(Enum):
    """Requests of different lanes to one broker go over different connections."""

    ORDINARY = "ordinary"
    #: Fetches, which wait at the broker for data to come.
    FETCH = "fetch"
    #: Requests to a coordinator: joining a group waits for its other members.
    COORDINATION = "coordination"


async def connect_channel(address: Address, client_id: str, timeout_s: float) -> PeerChannel:
    """A channel over the network; the simulator has its own way."""
    return await PeerChannel.connect(
        address.host, address.port, client_id=client_id, timeout_s=timeout_s
    )


class ClusterConnection:
    """Use it with `async with`, which makes the first contact and closes all channels at the end.

    `timeout_s` is the time for a whole operation, with all its attempts, unless a call gives it;
    `request_timeout_s` that for the answer to one request, the same if it is not given. With
    `fetches_in_thread` what is fetched is received by a thread for each broker.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = CLIENT_ID,
        timeout_s: float = TIMEOUT_S,
        request_timeout_s: float | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        policy: RetryPolicy | None = None,
        generator: random.Random | None = None,
        connect: Connect = connect_channel,
        fetches_in_thread: bool = False,
    ) -> None:
        self.metadata = ClusterMetadata()
        self.client_id = client_id
        self.timeout_s = timeout_s
        self.request_timeout_s = timeout_s if request_timeout_s is None else request_timeout_s
        self.policy = policy or RetryPolicy()
        self.generator = generator or random.Random()
        self._bootstrap = parse_bootstrap(bootstrap)
        self._connect_timeout_s = connect_timeout_s
        self._connect = connect
        self._fetches_in_thread = fetches_in_thread
        self._channels: dict[tuple[Address, Lane], PeerChannel] = {}
        self._is_closed = False
        self._connecting: dict[tuple[Address, Lane], asyncio.Task[PeerChannel]] = {}

    async def __aenter__(self) -> Self:
        self._is_closed = False
        try:
            await self.refresh(())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every channel; what waits for an answer fails, and so does what is asked later."""
        self._is_closed = True
        await self.close_channels()

    async def close_channels(self) -> None:
        """Close every channel; what is asked later opens them again."""
        connecting, self._connecting = list(self._connecting.values()), {}
        for task in connecting:
            task.cancel()
        if connecting:
            await asyncio.gather(*connecting, return_exceptions=True)
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()

    # -- metadata --------------------------------------------------------------------------------

    async def refresh(
        self,
        topics: Collection[str] | None,
        *,
        allow_auto_creation: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Ask about brokers and these topics, or all if None; one attempt."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=allow_auto_creation,
        )
        response = await self.ask(request, MetadataResponse, timeout_s=timeout_s)
        if response.error_code:
            raise refusal(response.error_code, None, "The cluster's metadata")
        self.metadata.learn(response, topics)

    async def find_topic(self, name: str, *, timeout_s: float | None = None) -> TopicInfo:
        """The topic, asked for if it is not known yet; raises `UnknownTopicError`."""
        known = self.metadata.topic(name)
        if known is not None:
            return known

        async def attempt() -> TopicInfo:
            await self.refresh([name])
            return self.metadata.existing_topic(name)

        return await self.retrying(attempt, f"Looking up topic {name!r}", timeout_s=timeout_s)

    # -- requests --------------------------------------------------------------------------------

    async def ask(
        self,
        request: Message,
        answer_class: type[Answer],
        broker_id: int | None = None,
        *,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """Send to a broker, any if None, and return its answer; one attempt."""
        channel = await self.channel(broker_id)
        limit_s = self.request_timeout_s if timeout_s is None else timeout_s
        try:
            answer = await channel.send(request, version=version, timeout_s=limit_s)
        except PeerTimeoutError as error:
            # Whatever is asked next over this connection would wait behind it.
            channel.give_up(error)
            raise
        if not isinstance(answer, answer_class):
            raise TypeError(f"{type(answer).__name__} answered {type(request).__name__}")
        return answer

    async def ask_controller(
        self, request: Message, answer_class: type[Answer], *, timeout_s: float | None = None
    ) -> Answer:
        """Send to the broker that the metadata call the controller; one attempt."""
        controller_id = self.metadata.controller_id
        known = controller_id != NO_LEADER and controller_id in self.metadata.brokers
        return await self.ask(
            request, answer_class, controller_id if known else None, timeout_s=timeout_s
        )

    async def highest_version(self, api_key: ApiKey, broker_id: int, bound: int) -> int:
        """The highest version up to `bound` that both sides have."""
        channel = await self.channel(broker_id)
        theirs = channel.versions.get(api_key, SCHEMA_VERSIONS[api_key])
        return min(theirs.highest, SCHEMA_VERSIONS[api_key].highest, bound)

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[Result]],
        what: str,
        *,
        timeout_s: float | None = None,
        unknown_topic_is_final: bool = True,
    ) -> Result:
        """Repeat `attempt` while that may help; `what` names it in the error of a deadline."""
        loop = asyncio.get_running_loop()
        deadline = Deadline.after(self.timeout_s if timeout_s is None else timeout_s, loop.time())
        attempt_number = 0
        last_error: KafkaError | None = None
        try:
            async with asyncio.timeout_at(deadline.at_s):
                while True:
                    attempt_number += 1
                    try:
                        if attempt_number > 1:
                            await self.refresh(())
                        return await attempt()
                    except KafkaError as error:
                        # After the first contact a cluster that is away may come back.
                        lost = isinstance(error, NoBrokerError)
                        final = unknown_topic_is_final
                        if not lost and not may_retry(error, unknown_topic_is_final=final):
                            raise
                        last_error = error
                    await asyncio.sleep(self.policy.pause_s(attempt_number, self.generator))
        except TimeoutError:
            reason = f": {last_error}" if last_error is not None else "."
            raise DeadlineError(
                f"{what} did not succeed within {deadline.timeout_s:g} s{reason}"
            ) from last_error

    # -- channels --------------------------------------------------------------------------------

    def open_channel(self, broker_id: int | None, lane: Lane = Lane.ORDINARY) -> PeerChannel | None:
        """The channel that `channel` would return, if it is open already."""
        if broker_id is None:
            return self._least_loaded()
        node = self.metadata.brokers.get(broker_id)
        channel = None if node is None else self._channels.get((node.address, lane))
        return None if channel is None or channel.is_closed else channel

    async def channel(
        self, broker_id: int | None = None, lane: Lane = Lane.ORDINARY
    ) -> PeerChannel:
        """An open channel to that broker, or to any."""
        if broker_id is None:
            return await self._any_channel()
        node = self.metadata.brokers.get(broker_id)
        if node is None:
            raise UnknownBrokerError(f"There is no broker {broker_id} in the cluster.")
        try:
            return await self._open(node.address, lane)
        except PeerUnavailableError as error:
            if node.address in self._bootstrap:
                raise
            raise BrokerUnreachableError(
                f"Broker {broker_id} cannot be reached at {node.address}, "
                f"the address that the cluster gives for it: {error}"
            ) from None

    def draw_broker(self) -> int | None:
        """The id of one of the brokers, any one; None if none is known."""
        brokers = sorted(self.metadata.brokers)
        return self.generator.choice(brokers) if brokers else None

    def _least_loaded(self) -> PeerChannel | None:
        """The open channel with the fewest answers to wait for."""
        ordinary = [
            channel
            for (_, lane), channel in self._channels.items()
            if lane is Lane.ORDINARY and not channel.is_closed
        ]
        return min(ordinary, key=lambda channel: channel.pending_count, default=None)

    async def _any_channel(self) -> PeerChannel:
        if (channel := self._least_loaded()) is not None:
            return channel
        known = [node.address for node in self.metadata.brokers.values()]
        self.generator.shuffle(known)
        failures: list[str] = []
        for address in dict.fromkeys([*known, *self._bootstrap]):
            try:
                return await self._open(address, Lane.ORDINARY)
            except (PeerUnavailableError, UnsupportedVersionError) as error:
                failures.append(str(error))
        raise NoBrokerError(" ".join(failures))

    async def _open(self, address: Address, lane: Lane) -> PeerChannel:
        if self._is_closed:
            raise ClientClosedError
        place = (address, lane)
        channel = self._channels.get(place)
        if channel is not None and not channel.is_closed:
            return channel
        task = self._connecting.get(place)
        if task is None:
            task = asyncio.ensure_future(
                self._connect(address, self.client_id, self._connect_timeout_s)
            )
            self._connecting[place] = task
            task.add_done_callback(lambda done: self._connected(place, done))
        # Others may wait for the same channel, so one that gives up must not end the attempt.
        return await asyncio.shield(task)

    def _connected(self, place: tuple[Address, Lane], task: "asyncio.Task[PeerChannel]") -> None:
        if self._connecting.get(place) is task:
            del self._connecting[place]
        if not task.cancelled() and task.exception() is None:
            channel = self._channels[place] = task.result()
            if self._fetches_in_thread and place[1] is Lane.FETCH and not channel.is_closed:
                channel.receive_in_thread()
