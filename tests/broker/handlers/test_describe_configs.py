"""DescribeConfigs: topics, brokers and loggers, with what Kafka answers for odd names."""

import logging
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

TOPIC, BROKER, LOGGER = 2, 4, 8


async def describe(
    broker: HandlerBroker,
    resource_type: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = True,
    documentation: bool = False,
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=keys
            )
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    answer = await broker.ask(request, DescribeConfigsResponse, version=version)
    (result,) = answer.results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_topics_settings(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"retention.ms": "1000"})
        result = await describe(broker, TOPIC, "orders", version=version, documentation=True)
        assert (result.error_code, result.error_message) == (0, None)
        entries = {entry.name: entry for entry in result.configs}
        assert entries.keys() == {row.name for row in TOPIC_SETTINGS}
        retention = entries["retention.ms"]
        assert (retention.value, retention.config_source, retention.read_only) == ("1000", 1, False)
        assert [(each.name, each.value, each.source) for each in retention.synonyms] == [
            ("retention.ms", "1000", 1),
            ("log.retention.hours", "168", 5),
        ]
        assert retention.config_type == (5 if version >= 3 else 0)
        doc = TOPIC_SETTINGS["retention.ms"].doc
        assert retention.documentation == (doc if version >= 3 else "")
        assert entries["segment.bytes"].config_source == 5

    run_with_broker(tmp_path, scenario)


def test_this_broker_and_all_brokers(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for name, threads in (("", "4"), ("0", "3")):
            await broker.context.controller.set_configs(
                ConfigResource(ResourceKind.BROKER, name), {"num.io.threads": threads}
            )
        result = await describe(broker, BROKER, "0")
        assert {entry.name for entry in result.configs} == {row.name for row in BROKER_SETTINGS}
        (threads_entry,) = (each for each in result.configs if each.name == "num.io.threads")
        assert [(each.value, each.source) for each in threads_entry.synonyms] == [
            ("3", 2),
            ("4", 3),
            ("2", 4),
            ("8", 5),
        ]
        (broker_id,) = (each for each in result.configs if each.name == "broker.id")
        assert (broker_id.value, broker_id.config_source, broker_id.read_only) == ("0", 4, True)
        result = await describe(broker, BROKER, "")
        assert [(each.name, each.value, each.config_source) for each in result.configs] == [
            ("num.io.threads", "4", 3)
        ]

    run_with_broker(tmp_path, scenario, {"num.io.threads": "2"})


def test_only_what_is_asked_for_is_told(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        result = await describe(broker, BROKER, "0", ["num.io.threads", "nonsense"], synonyms=False)
        (entry,) = result.configs
        assert (entry.name, entry.synonyms, entry.documentation) == ("num.io.threads", [], None)
        result = await describe(broker, BROKER, "0", [])
        assert len(result.configs) == len(BROKER_SETTINGS)

    run_with_broker(tmp_path, scenario)


def test_loggers(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        result = await describe(broker, LOGGER, "0", documentation=True)
        names = [entry.name for entry in result.configs]
        assert names[0] == "root" and __name__ in names
        (entry,) = (each for each in result.configs if each.name == __name__)
        assert (entry.value, entry.config_source, entry.config_type) == ("ERROR", 6, 0)
        assert (entry.documentation, entry.synonyms, entry.read_only) == ("", [], False)
        result = await describe(broker, LOGGER, "0", [__name__, "no.such"])
        assert len(result.configs) == 1

    logger = logging.getLogger(__name__)
    logger.setLevel(logging.ERROR)
    try:
        run_with_broker(tmp_path, scenario)
    finally:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a" * 30_000, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (BROKER, " 0", ErrorCode.INVALID_REQUEST),
        (BROKER, "x" * 32_767, ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_does_not_exist(
    tmp_path: Path, resource_type: int, name: str, code: ErrorCode
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in (1, 4):
            result = await describe(broker, resource_type, name, version=version)
            assert (result.error_code, result.configs) == (code, [])
            assert result.error_message
        assert broker.context.metrics.errors == {(32, code): 2}

    run_with_broker(tmp_path, scenario)


def test_one_request_may_ask_for_several_and_hears_of_each_once(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        names = ["orders", "nope", "orders"]
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in names
            ]
        )
        answer = await broker.ask(request, DescribeConfigsResponse)
        assert [result.resource_name for result in answer.results] == ["orders", "nope"]
        assert [bool(result.configs) for result in answer.results] == [True, False]

    run_with_broker(tmp_path, scenario)
