"""Which share of a topic is traced: asked once and then now and then, without a long wait."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.tracing.sampling import Sampler
from headwater.client.tracing.topic_shares import TopicShares
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


class FakeConnection:
    """A cluster whose topics all have one answer."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.error: KafkaError | None = None
        self.speaks = asyncio.Event()
        self.speaks.set()
        self.asked: list[list[str]] = []

    async def ask(self, request: DescribeConfigsRequest, _: type) -> DescribeConfigsResponse:
        names = [each.resource_name for each in request.resources]
        self.asked.append(names)
        await self.speaks.wait()
        if self.error is not None:
            raise self.error
        configs = []
        if self.text is not None:
            configs = [DescribeConfigsResourceResult(name="trace.sample", value=self.text)]
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_name=name, configs=configs) for name in names]
        )


Scenario = Callable[[TopicShares, Sampler, FakeConnection], Coroutine[Any, Any, None]]


def run(
    scenario: Scenario, text: str | None = "0.5", own: float | None = None, refresh_s: float = 60.0
) -> None:
    async def whole() -> None:
        connection, sampler = FakeConnection(text), Sampler(random.Random(1))
        shares = TopicShares(
            cast("ClusterConnection", connection), sampler, own, refresh_s=refresh_s
        )
        await scenario(shares, sampler, connection)
        await shares.close()

    asyncio.run(whole())


def test_a_topic_is_asked_about_once() -> None:
    async def scenario(shares: TopicShares, sampler: Sampler, connection: FakeConnection) -> None:
        await shares.learn("orders", 10)
        await shares.learn("orders", 10)
        assert (sampler.share("orders"), connection.asked) == (0.5, [["orders"]])

    run(scenario)


@pytest.mark.parametrize("text", [None, "", "much", "2", "-1", "nan"])
def test_a_cluster_without_the_setting_samples_nothing(text: str | None) -> None:
    """Apache Kafka, for example."""

    async def scenario(shares: TopicShares, sampler: Sampler, connection: FakeConnection) -> None:
        await shares.learn("orders", 10)
        assert sampler.share("orders") == 0.0

    run(scenario, text)


def test_ones_own_share_needs_no_question() -> None:
    async def scenario(shares: TopicShares, sampler: Sampler, connection: FakeConnection) -> None:
        await shares.learn("orders", 10)
        assert (sampler.share("orders"), connection.asked) == (0.25, [])

    run(scenario, own=0.25)


def test_without_an_answer_nothing_is_sampled_until_there_is_one() -> None:
    async def scenario(shares: TopicShares, sampler: Sampler, connection: FakeConnection) -> None:
        connection.error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
        await shares.learn("orders", 10)
        assert sampler.share("orders") == 0.0
        connection.error = None
        connection.speaks.clear()
        await shares.learn("payments", 0.01)
        assert sampler.share("payments") == 0.0
        connection.speaks.set()
        while sampler.share("orders") != 0.5 or sampler.share("payments") != 0.5:
            await asyncio.sleep(0.001)
        assert ["orders", "payments"] in connection.asked

    run(scenario, refresh_s=0.005)
