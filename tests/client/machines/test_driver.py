"""The driver of machines, on brokers that answer as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headwater.base.errors import ErrorCode, KafkaError, NetworkError
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.errors import BrokerUnreachableError
from headwater.client.machines.ask import Ask, CoordinatorOf, Target
from headwater.client.machines.driver import Driver
from headwater.net.peer_errors import PeerTimeoutError
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import Disconnect, FakeBrokers
from tests.support.fakes.peers.coordinators import connection_to, place_coordinators

GROUP = CoordinatorOf(CoordinatorKind.GROUP, "g")


class Asking:
    """A machine that asks for what it is told to, and writes down what it hears."""

    def __init__(self) -> None:
        self.to_ask: list[Ask] = []
        self.heard: list[Any] = []
        self.wake_s: float | None = None
        self.coordinators = CoordinatorCache()
        self.asked_count = 0
        self._news = asyncio.Event()

    def put(self, target: Target, timeout_s: float = 5.0, lane: Lane = Lane.ORDINARY) -> None:
        is_coordinated = isinstance(target, CoordinatorOf)
        request = HeartbeatRequest(group_id="g") if is_coordinated else ListGroupsRequest()
        self.to_ask.append(
            Ask(request, target, self._hear, self._hear, timeout_s=timeout_s, lane=lane)
        )

    def asks(self, now_s: float) -> Sequence[Ask]:
        self.asked_count += 1
        asks, self.to_ask = self.to_ask, []
        return asks

    def wake_at_s(self, now_s: float) -> float | None:
        return self.wake_s

    async def hears(self, count: int) -> list[Any]:
        async with asyncio.timeout(20.0):
            while len(self.heard) < count:
                self._news.clear()
                await self._news.wait()
        return self.heard

    def _hear(self, outcome: Any, _now_s: float) -> None:
        self.heard.append(outcome)
        self._news.set()


@asynccontextmanager
async def driven(cluster: FakeBrokers) -> AsyncIterator[tuple[Driver, Asking]]:
    async with connection_to(cluster) as connection:
        machine = Asking()
        driver = Driver(connection, machine.coordinators, [machine])
        try:
            yield driver, machine
        finally:
            await driver.close()


def answer_group_lists(cluster: FakeBrokers) -> None:
    cluster.script(ApiKey.LIST_GROUPS, lambda call: ListGroupsResponse(throttle_time_ms=7))


@run_async
async def test_an_answer_comes_to_who_asked() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        answer_group_lists(cluster)
        async with driven(cluster) as (driver, machine):
            for target in (0, 1, None):
                machine.put(target)
            driver.wake()
            answers = await machine.hears(3)
        assert [answer.throttle_time_ms for answer in answers] == [7, 7, 7]
        brokers = [call.broker_id for call in cluster.calls if call.api_key is ApiKey.LIST_GROUPS]
        assert {0, 1} == set(brokers)


@run_async
async def test_the_order_is_kept_while_a_connection_is_made() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        seen: list[str] = []

        def answer(call: Any) -> ListGroupsResponse:
            seen.append(call.request.states_filter[0])
            return ListGroupsResponse()

        cluster.script(ApiKey.LIST_GROUPS, answer)
        async with driven(cluster) as (driver, machine):
            for number in range(30):
                machine.put(1, lane=Lane.COORDINATION)
                machine.to_ask[-1].request = ListGroupsRequest(states_filter=[str(number)])
                driver.wake()
                # Some come before the connection is there, some after.
                await asyncio.sleep(0)
            await machine.hears(30)
        assert seen == [str(number) for number in range(30)]


@run_async
async def test_what_cannot_be_encoded_fails_and_nothing_else() -> None:
    """Something that a user gave went all the way down."""
    async with FakeBrokers(broker_count=2) as cluster:
        answer_group_lists(cluster)
        async with driven(cluster) as (driver, machine):
            for states in (["ok"], [5], ["ok"]):
                machine.put(1)
                machine.to_ask[-1].request = ListGroupsRequest(states_filter=states)  # type: ignore[arg-type]
            driver.wake()
            heard = await machine.hears(3)
        [error] = [each for each in heard if isinstance(each, KafkaError)]
        assert error.code is ErrorCode.INVALID_REQUEST


@run_async
async def test_what_is_not_answered_in_time_costs_the_connection() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(ApiKey.LIST_GROUPS, lambda call: None)
        async with driven(cluster) as (driver, machine):
            machine.put(0, timeout_s=0.05)
            machine.put(0, timeout_s=30.0)
            driver.wake()
            first, second = await machine.hears(2)
            assert isinstance(first, PeerTimeoutError) and isinstance(second, PeerTimeoutError)
            answer_group_lists(cluster)
            machine.put(0)
            driver.wake()
            assert (await machine.hears(3))[2].throttle_time_ms == 7


@pytest.mark.parametrize("trouble", ["closed", "gone"])
@run_async
async def test_a_broker_that_is_away_is_told_as_something_that_may_pass(trouble: str) -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        cluster.script(ApiKey.LIST_GROUPS, lambda call: Disconnect())
        async with driven(cluster) as (driver, machine):
            machine.put(1 if trouble == "closed" else 9)
            driver.wake()
            [error] = await machine.hears(1)
        assert isinstance(error, NetworkError if trouble == "closed" else BrokerUnreachableError)
        assert error.retriable


@run_async
async def test_a_coordinator_is_looked_for_once_and_again_when_it_is_lost() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        owners = {"g": 0}
        place_coordinators(cluster, owners)
        cluster.script(ApiKey.HEARTBEAT, lambda call: HeartbeatResponse())
        async with driven(cluster) as (driver, machine):
            machine.put(GROUP)
            machine.put(GROUP)
            driver.wake()
            await machine.hears(2)
            assert len(cluster.requests(ApiKey.FIND_COORDINATOR)) == 1
            owners["g"] = 1
            await cluster.stop_broker(0)
            for number in range(3, 40):
                machine.put(GROUP)
                driver.wake()
                outcome = (await machine.hears(number))[-1]
                if not isinstance(outcome, KafkaError):
                    break
                assert outcome.retriable
                await asyncio.sleep(0.05)
        assert isinstance(outcome, HeartbeatResponse)
        assert [call.broker_id for call in cluster.calls if call.api_key is ApiKey.HEARTBEAT] == [
            0,
            0,
            1,
        ]


@run_async
async def test_a_broker_that_missed_the_failover_is_not_believed_for_ever() -> None:
    async with FakeBrokers(broker_count=3) as cluster:
        # Broker 0, the first one that is asked, is cut off from the others and knows nothing of it.
        cluster.script(
            ApiKey.FIND_COORDINATOR,
            lambda call: FindCoordinatorResponse(
                coordinators=[Coordinator(key="g", node_id=0 if call.broker_id == 0 else 2)]
            ),
        )
        cluster.script(
            ApiKey.HEARTBEAT, lambda call: HeartbeatResponse(throttle_time_ms=call.broker_id)
        )
        async with driven(cluster) as (driver, machine):
            for number in range(1, 40):
                machine.put(GROUP)
                driver.wake()
                if (await machine.hears(number))[-1].throttle_time_ms == 2:
                    break
                machine.coordinators.note_error(GROUP, ErrorCode.NOT_COORDINATOR)
        assert machine.heard[0].throttle_time_ms == 0
        assert machine.heard[-1].throttle_time_ms == 2


@run_async
async def test_no_coordinator_is_an_error_that_may_pass() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"g": -1})
        async with driven(cluster) as (driver, machine):
            machine.put(GROUP)
            driver.wake()
            [error] = await machine.hears(1)
        assert error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@run_async
async def test_machines_are_asked_at_the_time_they_name() -> None:
    async with FakeBrokers() as cluster, driven(cluster) as (driver, machine):
        loop = asyncio.get_running_loop()
        answer_group_lists(cluster)
        driver.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert machine.asked_count == 1
        machine.wake_s = loop.time() + 0.02
        driver.wake()
        await asyncio.sleep(0)
        machine.put(0)
        machine.wake_s = None
        assert len(await machine.hears(1)) == 1


@run_async
async def test_what_is_under_way_fails_when_the_driver_is_closed() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"g": 0})
        cluster.script(ApiKey.FIND_COORDINATOR, lambda call: None)
        async with driven(cluster) as (driver, machine):
            machine.put(GROUP)
            driver.wake()
            while not cluster.requests(ApiKey.FIND_COORDINATOR):
                await asyncio.sleep(0.01)
        assert [type(each).__name__ for each in machine.heard] == ["ClientClosedError"]
