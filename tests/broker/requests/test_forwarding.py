"""Requests for the controller on another broker: who is asked, how often, and what then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.forwarding import answer, ask_controller, is_refused
from headwater.cluster.image.image import ClusterImage
from headwater.net.connection import Connection
from headwater.net.peer_errors import PeerTimeoutError, PeerUnavailableError
from headwater.net.peer_identity import ANONYMOUS, PeerIdentity
from headwater.sim.virtual_loop import VirtualLoop
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import RequestHeader
from headwater.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headwater.wire.schema import Message
from tests.support.brokers.handler_broker import FakeConnection

VERSION = 5
REQUEST = CreateTopicsRequest(topics=[CreatableTopic(name="orders")], timeout_ms=20_000)


def created(*codes: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(error_code=code) for code in codes])


DONE = created(0)
REFUSED = created(ErrorCode.NOT_CONTROLLER)


class _Broker:
    """What forwarding needs of a broker; the controller's answers are a script."""

    def __init__(self, *script: Message | KafkaError) -> None:
        self.script = list(script)
        self.asked: list[tuple[float, int | None]] = []
        self.asked_s: list[float] = []
        self.is_controller = False
        self.image = ClusterImage()
        self.member = self.channels = self.settings = self
        self.seen_after = 0
        self.answer_s = 0.0

    def integer(self, name: str) -> int:
        assert name == "request.timeout.ms"
        return 30_000

    @property
    def loop_time(self) -> Callable[[], float]:
        return asyncio.get_running_loop().time

    async def send_to_controller(
        self, _: Message, timeout_s: float, version: int | None = None
    ) -> Any:
        self.asked.append((timeout_s, version))
        self.asked_s.append(self.loop_time())
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        await asyncio.sleep(self.answer_s)
        if isinstance(step, KafkaError):
            raise step
        return step

    async def handle(self, _: Message, context: RequestContext) -> CreateTopicsResponse:
        """The own handler, which asks the controller of this broker."""
        if context.refusal is not None:
            return created(context.refusal.code)
        return created(0 if self.is_controller else ErrorCode.NOT_CONTROLLER)

    def is_seen(self, _: object, __: object, ___: object) -> bool:
        self.seen_after -= 1
        return self.seen_after < 0

    async def answer(
        self, client_id: str = "admin", identity: PeerIdentity = ANONYMOUS
    ) -> list[int]:
        handler = ApiHandler(
            CARDS[ApiKey.CREATE_TOPICS], self.handle, forwarded_until=cast(Any, self.is_seen)
        )
        context = RequestContext(
            cast(BrokerContext, self),
            RequestHeader(ApiKey.CREATE_TOPICS, VERSION, 1, client_id, body_position=0),
            cast(Connection, FakeConnection(identity=identity)),
        )
        response = await answer(handler, REQUEST, context)
        assert isinstance(response, CreateTopicsResponse)
        return [topic.error_code for topic in response.topics]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """In virtual time, so that waiting costs nothing."""
    loop = VirtualLoop(Random(0))
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(scenario)
        assert loop.unhandled == []
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_the_controller_answers_for_another_broker_in_the_version_of_the_client() -> None:
    async def scenario() -> None:
        broker = _Broker(created(0, ErrorCode.TOPIC_ALREADY_EXISTS))
        assert await broker.answer() == [0, ErrorCode.TOPIC_ALREADY_EXISTS]
        # The request's own time, and a little more for the answer that it was not enough.
        assert broker.asked == [(25.0, VERSION)]

    run(scenario())


def test_the_controller_itself_forwards_nothing() -> None:
    async def scenario() -> None:
        broker = _Broker(DONE)
        broker.is_controller = True
        assert await broker.answer() == [0]
        assert broker.asked == []

    run(scenario())


def test_what_another_broker_forwards_is_not_forwarded_again() -> None:
    async def scenario() -> None:
        broker = _Broker(DONE)
        answer = await broker.answer("broker-7", PeerIdentity(7))
        assert answer == [ErrorCode.NOT_CONTROLLER]
        assert broker.asked == []
        # This one only calls itself a broker.
        assert await broker.answer("broker-7") == [0]

    run(scenario())


@pytest.mark.parametrize(
    "trouble",
    [REFUSED, PeerUnavailableError("It is gone."), KafkaError(ErrorCode.NOT_CONTROLLER)],
)
def test_a_controller_that_is_just_changing_is_asked_again(
    trouble: Message | KafkaError,
) -> None:
    async def scenario() -> None:
        broker = _Broker(trouble, trouble, trouble, DONE)
        assert await broker.answer() == [0]
        assert len(broker.asked) == 4
        assert broker.asked_s[-1] < 1.0

    run(scenario())


def test_the_successor_of_a_controller_that_fell_silent_is_asked() -> None:
    async def scenario() -> None:
        broker = _Broker(PeerUnavailableError("It was given up."), REFUSED, DONE)
        broker.answer_s = 6.0
        assert await broker.answer() == [0]
        # Whatever time is left.
        assert [timeout_s for timeout_s, _ in broker.asked] == pytest.approx(
            [25.0, 19.0, 13.0], abs=0.1
        )
        broker = _Broker(PeerUnavailableError("It was given up."))
        broker.answer_s = 6.0
        assert await broker.answer() == [ErrorCode.NOT_CONTROLLER]
        assert len(broker.asked) == 5

    run(scenario())


def test_after_a_second_without_a_controller_the_client_hears_so() -> None:
    async def scenario() -> None:
        broker = _Broker(PeerUnavailableError("It is gone."))
        assert await broker.answer() == [ErrorCode.NOT_CONTROLLER]
        assert 5 < len(broker.asked) < 30
        assert 0.8 < broker.asked_s[-1] <= 1.0

    run(scenario())


def test_what_may_have_been_done_in_part_is_not_asked_for_again() -> None:
    async def scenario() -> None:
        broker = _Broker(created(0, ErrorCode.NOT_CONTROLLER), DONE)
        assert await broker.answer() == [0, ErrorCode.NOT_CONTROLLER]

    run(scenario())


def test_a_controller_that_does_not_answer_in_time_is_not_asked_again() -> None:
    async def scenario() -> None:
        broker = _Broker(PeerTimeoutError("It takes long."), DONE)
        assert await broker.answer() == [ErrorCode.REQUEST_TIMED_OUT]
        assert len(broker.asked) == 1

    run(scenario())


def test_the_answer_waits_until_this_broker_has_heard_of_the_change() -> None:
    async def scenario() -> None:
        broker = _Broker(DONE)
        broker.seen_after = 5
        assert await broker.answer() == [0]
        assert broker.seen_after == -1
        assert broker.loop_time() > 0.01

    run(scenario())


def test_a_broker_that_does_not_hear_of_it_answers_all_the_same() -> None:
    async def scenario() -> None:
        broker = _Broker(DONE)
        broker.seen_after = 10**9
        assert await broker.answer() == [0]
        assert 1.9 < broker.loop_time() < 2.2

    run(scenario())


def test_a_broker_that_asks_for_itself_hears_the_error() -> None:
    async def scenario() -> None:
        broker = _Broker(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        with pytest.raises(KafkaError) as caught:
            await ask_controller(cast(BrokerContext, broker), REQUEST, 5)
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert broker.asked == [(5, None)]

    run(scenario())


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (created(), False),
        (DONE, False),
        (REFUSED, True),
        (created(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER), True),
        (created(ErrorCode.NOT_CONTROLLER, 0), False),
        (AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER), True),
        (AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), False),
        (AllocateProducerIdsResponse(), False),
    ],
)
def test_a_refusal_is_one_of_everything(response: Message, expected: bool) -> None:
    assert is_refused(response) is expected
