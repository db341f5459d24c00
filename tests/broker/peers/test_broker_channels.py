"""The way from a broker to all brokers."""

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.access.broker_proof import BrokerProof
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.broker.metrics.broker_metrics import BrokerMetrics
from headwater.broker.peers.channels import BrokerChannels
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.api_table import build_table
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import BrokerInfo, ClusterImage, EndpointInfo
from headwater.net.exchange import Exchange
from headwater.net.limits import ConnectionLimits
from headwater.net.listener import Endpoint, Listener
from headwater.net.peer_errors import (
    PeerTimeoutError,
    PeerUnavailableError,
    UnsupportedVersionError,
)
from headwater.wire.api_keys import ApiKey, VersionRange
from headwater.wire.frames import read_request_header
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.support.async_tests import run_async
from tests.support.fakes.peers.broker import FakeBroker, until

_OWN, _OTHER = 1, 2
_SECRET = b"s" * 32

Handle = Callable[[MetadataRequest, RequestContext], Awaitable[MetadataResponse]]


class _Broker:
    """What channels need of their broker."""

    def __init__(self, handle: Handle | None = None) -> None:
        self.node_id = _OWN
        self.proof = _proof(_OWN)
        self.settings = self
        self.metrics = BrokerMetrics()
        self.image = ClusterImage()
        self.listener_for_brokers: str | None = None
        self.api_table = build_table(
            []
            if handle is None
            else [ApiHandler(ApiCard(ApiKey.METADATA, versions=VersionRange(0, 9)), handle)]
        )

    def integer(self, name: str) -> int:
        return {"socket.connection.setup.timeout.ms": 5_000}[name]

    def optional_text(self, name: str) -> str | None:
        assert name == "inter.broker.listener.name"
        return self.listener_for_brokers

    def see(self, *endpoints: EndpointInfo) -> None:
        self.image = ClusterImage(brokers={_OTHER: BrokerInfo(_OTHER, endpoints)})

    def channels(self) -> BrokerChannels:
        return BrokerChannels(cast(BrokerContext, self))


def _proof(broker_id: int) -> BrokerProof:
    return BrokerProof(_SECRET, "cluster", broker_id, secrets.token_bytes)


def _other() -> FakeBroker:
    return FakeBroker(proof=_proof(_OTHER))


async def _listen(
    broker: FakeBroker, limits: ConnectionLimits | None = None
) -> tuple[Listener, EndpointInfo]:
    endpoint = Endpoint("TEST", "127.0.0.1", 0)
    listener = await Listener.start(endpoint, broker, limits or ConnectionLimits())
    return listener, EndpointInfo("TEST", "127.0.0.1", listener.port)


def _asking(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


@run_async
async def test_the_own_handler_is_asked_without_a_connection() -> None:
    async def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        assert context.api_version == 9  # The highest that is served, below that of the schema.
        assert context.connection.peer == ("", 0)
        return MetadataResponse(cluster_id=str((request.topics or [])[0].name))

    channels = _Broker(handle).channels()
    answer: MetadataResponse = await channels.send(_OWN, _asking("mine"), 5)
    assert answer.cluster_id == "mine"
    await channels.close()


@run_async
async def test_what_the_own_handler_raises_is_an_error_of_the_protocol() -> None:
    async def refuse(request: MetadataRequest, _: RequestContext) -> MetadataResponse:
        if (request.topics or [])[0].name == "refused":
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        raise RuntimeError("This is a mistake in the program.")

    channels = _Broker(refuse).channels()
    with pytest.raises(KafkaError) as caught:
        await channels.send(_OWN, _asking("refused"), 5)
    assert caught.value.code is ErrorCode.NOT_COORDINATOR
    with pytest.raises(KafkaError) as caught:
        await channels.send(_OWN, _asking("failed"), 5)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@run_async
async def test_the_own_handler_has_as_much_time_as_others() -> None:
    async def sleep(_: MetadataRequest, __: RequestContext) -> MetadataResponse:
        await asyncio.sleep(60)
        return MetadataResponse()

    with pytest.raises(PeerTimeoutError):
        await _Broker(sleep).channels().send(_OWN, _asking("late"), 0.01)


@run_async
async def test_what_is_not_served_cannot_be_asked_for() -> None:
    with pytest.raises(UnsupportedVersionError):
        await _Broker().channels().send(_OWN, FetchRequest(), 5)


@run_async
async def test_one_connection_to_another_broker_serves_all_requests() -> None:
    limits = ConnectionLimits()
    listener, endpoint = await _listen(_other(), limits)
    broker = _Broker()
    broker.see(endpoint)
    channels = broker.channels()
    answers: list[Any] = await asyncio.gather(
        *(channels.send(_OTHER, _asking(f"now{number}"), 5) for number in range(5))
    )
    assert [answer.cluster_id for answer in answers] == [f"now{number}" for number in range(5)]
    assert limits.counters.open == 1
    await channels.close()
    await listener.close(1)


@run_async
async def test_a_lost_connection_is_made_anew_with_the_next_request() -> None:
    other = _other()
    listener, endpoint = await _listen(other)
    broker = _Broker()
    broker.see(endpoint)
    channels = broker.channels()
    with pytest.raises(PeerUnavailableError):
        await channels.send(_OTHER, _asking("close"), 5)
    answer = await channels.send(_OTHER, _asking("now"), 5)
    assert answer.cluster_id == "now"
    await channels.close()
    await listener.close(1)


@run_async
async def test_a_broker_is_followed_to_its_new_address() -> None:
    first, second, limits = _other(), _other(), ConnectionLimits()
    old, old_endpoint = await _listen(first, limits)
    new, new_endpoint = await _listen(second)
    broker = _Broker()
    broker.see(old_endpoint)
    channels = broker.channels()
    await channels.send(_OTHER, _asking("now"), 5)
    broker.see(new_endpoint)
    await channels.send(_OTHER, _asking("now"), 5)
    assert (first.seen, second.seen) == (["now"], ["now"])
    await until(lambda: limits.counters.open == 0)
    await channels.close()
    await old.close(1)
    await new.close(1)


@run_async
async def test_brokers_use_the_listener_that_is_meant_for_them() -> None:
    other = _other()
    listener, endpoint = await _listen(other)
    broker = _Broker()
    broker.see(EndpointInfo("CLIENTS", "127.0.0.1", 1), endpoint)
    channels = broker.channels()
    with pytest.raises(PeerUnavailableError):
        await channels.send(_OTHER, _asking("now"), 5)
    broker.listener_for_brokers = "TEST"
    answer = await channels.send(_OTHER, _asking("now"), 5)
    assert answer.cluster_id == "now"
    await channels.close()
    await listener.close(1)


@run_async
async def test_nothing_is_told_to_those_who_do_not_prove_to_be_the_broker() -> None:
    strangers = [
        FakeBroker(proof=_proof(3)),
        FakeBroker(proof=BrokerProof(b"x" * 32, "cluster", _OTHER, secrets.token_bytes)),
        FakeBroker(proof=BrokerProof(_SECRET, "elsewhere", _OTHER, secrets.token_bytes)),
    ]
    for stranger in strangers:
        limits = ConnectionLimits()
        listener, endpoint = await _listen(stranger, limits)
        broker = _Broker()
        broker.see(endpoint)
        channels = broker.channels()
        with pytest.raises(PeerUnavailableError, match="does not prove that it is broker 2"):
            await channels.send(_OTHER, _asking("now"), 5)
        with pytest.raises(PeerUnavailableError):
            await channels.open(_OTHER)
        assert stranger.seen == []
        await until(lambda limits=limits: limits.counters.open == 0)
        await channels.close()
        await listener.close(1)


@run_async
async def test_nor_to_those_who_answer_with_something_else() -> None:
    class Babbler(FakeBroker):
        def __call__(self, exchange: Exchange) -> None:
            header = read_request_header(exchange.frame)
            if header.api_key == ApiKey.PROVE_BROKER:
                correlation_id = header.correlation_id.to_bytes(4, "big")
                exchange.answer([b"\0\0\0\x08", correlation_id, b"\xff" * 4])
            else:
                super().__call__(exchange)

    babbler = Babbler()
    listener, endpoint = await _listen(babbler)
    broker = _Broker()
    broker.see(endpoint)
    channels = broker.channels()
    with pytest.raises(PeerUnavailableError):
        await channels.send(_OTHER, _asking("now"), 5)
    assert babbler.seen == []
    await channels.close()
    await listener.close(1)


@run_async
async def test_a_broker_that_is_not_in_the_image_is_unavailable() -> None:
    with pytest.raises(PeerUnavailableError):
        await _Broker().channels().send(_OTHER, _asking("now"), 5)


@run_async
async def test_nobody_waits_for_a_broker_that_the_cluster_has_given_up() -> None:
    other = _other()
    listener, endpoint = await _listen(other)
    broker = _Broker()
    broker.see(endpoint)
    channels = broker.channels()
    waiting = asyncio.ensure_future(channels.send(_OTHER, _asking("hold"), 30))
    await until(lambda: other.held)
    # It is still there, and so are others that come and go.
    present = broker.image.brokers[_OTHER]._replace(broker_epoch=7)
    channels.follow(ImageEdits(brokers={_OTHER: present}).apply(broker.image))
    channels.follow(ImageEdits(brokers={9: None}).apply(broker.image))
    await asyncio.sleep(0)
    assert not waiting.done()
    channels.follow(ImageEdits(brokers={_OTHER: None}).apply(broker.image))
    with pytest.raises(PeerUnavailableError):
        await waiting
    other.held.clear()
    await channels.close()
    await listener.close(0)


@run_async
async def test_nor_for_a_connection_to_it_that_is_being_made() -> None:
    # The kernel takes the connection, and nobody ever answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = _Broker()
        broker.see(EndpointInfo("TEST", *silent.getsockname()))
        channels = broker.channels()
        waiting = asyncio.ensure_future(channels.send(_OTHER, _asking("now"), 30))
        for _ in range(20):
            await asyncio.sleep(0.001)
        channels.follow(ImageEdits(brokers={_OTHER: None}).apply(broker.image))
        with pytest.raises(PeerUnavailableError):
            await waiting
        await channels.close()


@run_async
async def test_closing_tells_those_who_wait() -> None:
    other = _other()
    listener, endpoint = await _listen(other)
    broker = _Broker()
    broker.see(endpoint)
    channels = broker.channels()
    waiting = asyncio.ensure_future(channels.send(_OTHER, _asking("hold"), 5))
    await until(lambda: other.held)
    await channels.close()
    with pytest.raises(PeerUnavailableError):
        await waiting
    other.held.clear()
    await listener.close(0)


@run_async
async def test_another_broker_that_does_not_answer_is_given_up() -> None:
    other = _other()
    listener, endpoint = await _listen(other)
    broker = _Broker()
    broker.see(endpoint)
    channels = broker.channels()
    with pytest.raises(PeerTimeoutError):
        await channels.send(_OTHER, _asking("hold"), 0.05)
    answer = asyncio.ensure_future(channels.send(_OTHER, _asking("now"), 5))
    await until(lambda: other.seen == ["hold", "now"])
    other.release()
    assert (await answer).cluster_id == "now"
    await channels.close()
    await listener.close(1)
