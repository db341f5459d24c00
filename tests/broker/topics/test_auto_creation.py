"""Topics that come when they are asked for: many clients at once, and creations that take long."""

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.topics import auto_creation
from headwater.broker.topics.auto_creation import create_missing
from headwater.cluster.image.change import ImageChange
from headwater.wire.api_keys import ApiKey
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.fakes.peers.broker import until


def test_clients_that_ask_at_the_same_time_find_one_topic(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        failures = await asyncio.gather(
            *(
                create_missing(["new", f"own-{number}"], broker.request_context(ApiKey.METADATA))
                for number in range(5)
            )
        )
        # One was first; the others hear that it is on its way, and find it when they look.
        assert failures.count({}) == 1
        assert failures.count({"new": ErrorCode.LEADER_NOT_AVAILABLE}) == 4
        assert len(broker.context.image.topics) == 6

    run_with_broker(tmp_path, scenario)


def test_a_creation_that_takes_long_is_not_waited_for_but_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_creation, "_WAIT_MS_MAX", 20)

    async def scenario(broker: HandlerBroker) -> None:
        may_go_on = asyncio.Event()

        async def wait(change: ImageChange) -> None:
            await may_go_on.wait()

        broker.context.member.subscribe(wait)
        failures = await create_missing(["slow"], broker.request_context(ApiKey.METADATA))
        assert failures == {"slow": ErrorCode.LEADER_NOT_AVAILABLE}
        assert "slow" not in broker.context.image.topics
        may_go_on.set()
        await until(lambda: "slow" in broker.context.image.topics)

    run_with_broker(tmp_path, scenario)


def test_one_request_does_not_create_any_number_of_topics(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        names = [f"t{number}" for number in range(10_001)]
        failures = await create_missing(names, broker.request_context(ApiKey.METADATA))
        assert set(failures.values()) == {ErrorCode.POLICY_VIOLATION}
        assert not broker.context.image.topics

    run_with_broker(tmp_path, scenario)
