"""A broker whose handlers are asked directly: everything is real but the connections.

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        response = await broker.ask(MetadataRequest(topics=None), MetadataResponse, version=12)
        assert ...

    run_with_broker(tmp_path, scenario)

Requests and responses go through the codec in the version that is asked for, so a handler sees what
it would see of a client, and its answer shows what a client would get to see of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from headwater.base.errors import KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.topics.new_topic import NewTopic
from headwater.net.connection import Connection
from headwater.net.peer_identity import ANONYMOUS, PeerIdentity
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import decode, encode
from headwater.wire.frames import RequestHeader
from headwater.wire.records import Record, encode_batch
from headwater.wire.schema import Message

Answer = TypeVar("Answer", bound=Message)

#: Where its clients are told to come.
ADVERTISED = ("192.0.2.7", 9092)
BASE_TIMESTAMP = 1_700_000_000_000


@dataclass
class FakeConnection:
    """What a handler may ask of a connection."""

    local: tuple[str, int] = ADVERTISED
    peer: tuple[str, int] = ("192.0.2.9", 40_000)
    listener_name: str = "PLAINTEXT"
    identity: PeerIdentity = ANONYMOUS
    state: dict[str, object] = field(default_factory=dict)


class HandlerBroker:
    def __init__(self, context: BrokerContext) -> None:
        self.context = context
        self.connection = FakeConnection()

    def become_broker(self, broker_id: int = 0) -> None:
        """From now on ask as a connection that has proven to be that broker."""
        self.connection.identity = PeerIdentity(broker_id)

    async def ask(
        self, request: Message, response_class: type[Answer], *, version: int | None = None
    ) -> Answer:
        """The answer of the request's handler, in a version, or else in the highest one."""
        handler = self.context.api_table.get(request.API_KEY)
        assert isinstance(handler, ApiHandler)
        if version is None:
            version = handler.card.versions.highest
        assert version in handler.card.versions
        read, _ = decode(type(request), encode(request, version), version)
        context = self.request_context(handler.api_key, version)
        response = await handler.handle(read, context)
        context.record_response(response)
        assert isinstance(response, response_class)
        answer, _ = decode(response_class, encode(response, version), version)
        return answer

    def request_context(self, api_key: ApiKey, version: int = 0) -> RequestContext:
        """What a handler is told of a request, from this broker's one connection."""
        header = RequestHeader(api_key, version, 1, "test", body_position=0)
        return RequestContext(self.context, header, cast(Connection, self.connection))

    async def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        topic = NewTopic(name, partitions, 1, configs=dict(configs or {}))
        outcomes = await self.context.controller.create_topics([topic])
        outcome = outcomes[name]
        if isinstance(outcome, KafkaError):
            raise outcome

    def append(self, topic: str, *timestamps_ms: int, partition: int = 0) -> None:
        """A batch for each timestamp, which counts from `BASE_TIMESTAMP`."""
        log = self.context.partitions.get(topic, partition)
        for timestamp in timestamps_ms:
            record = Record(0, BASE_TIMESTAMP + timestamp, b"key", b"value")
            log.append(bytearray(encode_batch([record])), acks=1, now_ms=BASE_TIMESTAMP)


def run_with_broker(
    directory: Path,
    scenario: Callable[[HandlerBroker], Awaitable[None]],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run a scenario with a broker on `directory`, which is stopped in the end."""
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://{}:{}".format(*ADVERTISED),
        "log.dirs": str(directory),
        "broker.id": "0",
        "acks.all.flush": "off",
        **(settings or {}),
    }

    async def run() -> None:
        server = BrokerServer(static_of(texts))
        await server.start()
        try:
            await scenario(HandlerBroker(server.context))
        finally:
            await server.stop()

    asyncio.run(run())
