"""A cluster of brokers that answer as a test tells them to, in the test's own event loop.

    async with FakeBrokers(broker_count=2) as cluster:
        cluster.topics["orders"] = [0, 1]           # the leaders of its partitions
        cluster.script(ApiKey.CREATE_TOPICS, lambda call: CreateTopicsResponse(...))

ApiVersions and Metadata are answered from what the cluster holds; everything else by its script. A
script returns a response, `None` to never answer, or `Disconnect`. `calls` holds all that came.
"""

import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from headwater.net.exchange import Exchange
from headwater.net.limits import ConnectionLimits
from headwater.net.listener import Endpoint, Listener
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey, VersionRange, request_class
from headwater.wire.codec import decode
from headwater.wire.frames import encode_response, read_request_header
from headwater.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headwater.wire.messages.produce import ProduceRequest
from headwater.wire.schema import Message

HOST = "127.0.0.1"


class Disconnect:
    """Instead of an answer: the connection is closed."""


class Call(NamedTuple):
    """A request that came to a broker."""

    broker_id: int
    api_key: ApiKey
    version: int
    request: Any


Script = Callable[[Call], "Message | Disconnect | None"]


class FakeBrokers:
    """See the module's text."""

    def __init__(self, broker_count: int = 1) -> None:
        self.topics: dict[str, list[int]] = {}
        self.topic_errors: dict[str, int] = {}
        #: Off for a broker from before topics had ids.
        self.has_topic_ids = True
        self.controller_id = 0
        self.calls: list[Call] = []
        self.listeners: dict[int, Listener] = {}
        #: Where a broker says it can be reached, if that is not true.
        self.claimed_ports: dict[int, int] = {}
        self.versions = dict(SCHEMA_VERSIONS)
        self._broker_count = broker_count
        self._scripts: dict[ApiKey, Script] = {}

    async def __aenter__(self) -> Self:
        for broker_id in range(self._broker_count):
            await self.start_broker(broker_id)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for broker_id in list(self.listeners):
            await self.stop_broker(broker_id)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{listener.port}" for listener in self.listeners.values())

    async def start_broker(self, broker_id: int, port: int = 0) -> None:
        def handle(exchange: Exchange) -> None:
            self._handle(broker_id, exchange)

        self.listeners[broker_id] = await Listener.start(
            Endpoint("PLAINTEXT", HOST, port), handle, ConnectionLimits()
        )

    async def stop_broker(self, broker_id: int) -> None:
        """End it; its connections are closed at once."""
        await self.listeners.pop(broker_id).close(0.0)

    def topic_id(self, name: str) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_DNS, name) if self.has_topic_ids else uuid.UUID(int=0)

    def script(self, api_key: ApiKey, script: Script) -> None:
        """How requests of this API are answered from now on."""
        self._scripts[api_key] = script

    def limit_version(self, api_key: ApiKey, highest: int) -> None:
        """Let the brokers not know newer versions."""
        self.versions[api_key] = VersionRange(self.versions[api_key].lowest, highest)

    def requests(self, api_key: ApiKey) -> list[Any]:
        """The requests of this API that came, in order."""
        return [call.request for call in self.calls if call.api_key is api_key]

    def _handle(self, broker_id: int, exchange: Exchange) -> None:
        header = read_request_header(exchange.frame)
        api_key = ApiKey(header.api_key)
        request, _ = decode(
            request_class(api_key), exchange.frame, header.api_version, header.body_position
        )
        call = Call(broker_id, api_key, header.api_version, request)
        self.calls.append(call)
        answer = self._answer(call)
        if isinstance(answer, Disconnect):
            exchange.disconnect("the script says so")
        elif answer is not None:
            exchange.answer(
                encode_response(api_key, header.api_version, header.correlation_id, answer)
            )
        elif isinstance(request, ProduceRequest) and request.acks == 0:
            exchange.answer_nothing()

    def _answer(self, call: Call) -> Message | Disconnect | None:
        if call.api_key in self._scripts:
            return self._scripts[call.api_key](call)
        if call.api_key is ApiKey.API_VERSIONS:
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=key, min_version=range_[0], max_version=range_[1])
                    for key, range_ in self.versions.items()
                ]
            )
        if call.api_key is ApiKey.METADATA:
            return self.metadata(call.request)
        raise AssertionError(f"no script for {call.api_key.name}")

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        """What the cluster holds of what is asked for."""
        names = list(self.topics)
        if request.topics is not None:
            names = [topic.name or "" for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=broker_id,
                    host=HOST,
                    port=self.claimed_ports.get(broker_id, listener.port),
                )
                for broker_id, listener in self.listeners.items()
            ],
            cluster_id="scripted",
            controller_id=self.controller_id,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name=name, error_code=self.topic_errors.get(name, 3))
        return MetadataResponseTopic(
            name=name,
            topic_id=self.topic_id(name),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index, leader_id=leader, replica_nodes=[0], isr_nodes=[0]
                )
                for index, leader in enumerate(self.topics[name])
            ],
        )
