"""ListConfigResources: topics, brokers and loggers by type."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([], [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "0"), (LOGGER, "0")]),
        ([TOPIC], [(TOPIC, "a"), (TOPIC, "b")]),
        ([BROKER, LOGGER], [(BROKER, "0"), (LOGGER, "0")]),
        ([CLIENT_METRICS, GROUP], []),
    ],
)
def test_resources_by_type(
    tmp_path: Path, types: list[int], expected: list[tuple[int, str]]
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("b")
        await broker.create_topic("a")
        request = ListConfigResourcesRequest(resource_types=types)
        answer = await broker.ask(request, ListConfigResourcesResponse, version=1)
        found = [(each.resource_type, each.resource_name) for each in answer.config_resources]
        assert (answer.error_code, found) == (0, expected)

    run_with_broker(tmp_path, scenario)


def test_the_first_version_knows_client_metrics_only(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        request = ListConfigResourcesRequest()
        answer = await broker.ask(request, ListConfigResourcesResponse, version=0)
        assert (answer.error_code, answer.config_resources) == (0, [])

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("unknown", [0, 99])
def test_a_type_that_does_not_exist(tmp_path: Path, unknown: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = ListConfigResourcesRequest(resource_types=[TOPIC, unknown])
        with pytest.raises(KafkaError) as raised:
            await broker.ask(request, ListConfigResourcesResponse, version=1)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION

    run_with_broker(tmp_path, scenario)
