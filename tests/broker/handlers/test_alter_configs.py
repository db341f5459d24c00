"""AlterConfigs: settings are replaced as a whole."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

TOPIC, BROKER, LOGGER = 2, 4, 8


async def alter(
    broker: HandlerBroker,
    resource_type: int,
    name: str,
    configs: dict[str, str | None],
    *,
    validate_only: bool = False,
    version: int = 2,
) -> int:
    resource = AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    answer = await broker.ask(request, AlterConfigsResponse, version=version)
    (response,) = answer.responses
    assert (response.resource_type, response.resource_name) == (resource_type, name)
    assert bool(response.error_message) == bool(response.error_code)
    return response.error_code


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_not_named_is_removed(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"retention.ms": "1", "segment.ms": "2"})
        configs: dict[str, str | None] = {"retention.ms": "3"}
        assert await alter(broker, TOPIC, "orders", configs, version=version) == 0
        assert broker.context.image.topic_configs("orders") == {"retention.ms": "3"}
        assert await alter(broker, TOPIC, "orders", {}, version=version) == 0
        assert broker.context.image.topic_configs("orders") == {}

    run_with_broker(tmp_path, scenario)


def test_brokers(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        settings = broker.context.settings
        both: dict[str, str | None] = {"max.connections": "9", "num.io.threads": "9"}
        assert await alter(broker, BROKER, "0", both) == 0
        assert await alter(broker, BROKER, "0", {"max.connections": "9"}) == 0
        assert (settings.integer("max.connections"), settings.integer("num.io.threads")) == (9, 8)

    run_with_broker(tmp_path, scenario)


def test_validation_changes_nothing(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"retention.ms": "1"})
        assert await alter(broker, TOPIC, "orders", {}, validate_only=True) == 0
        assert broker.context.image.topic_configs("orders") == {"retention.ms": "1"}

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("resource_type", "name", "configs", "code"),
    [
        (TOPIC, "orders", {"retention.ms": "abc"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", {"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", {"nonsense": "1"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "nope", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "0", {"log.dirs": "/x"}, ErrorCode.INVALID_REQUEST),
        (LOGGER, "0", {"root": "INFO"}, ErrorCode.INVALID_REQUEST),
        (99, "x", {}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused(
    tmp_path: Path,
    resource_type: int,
    name: str,
    configs: dict[str, str | None],
    code: ErrorCode,
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"segment.ms": "2"})
        assert await alter(broker, resource_type, name, configs) == code
        assert broker.context.image.topic_configs("orders") == {"segment.ms": "2"}

    run_with_broker(tmp_path, scenario)
