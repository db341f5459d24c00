"""IncrementalAlterConfigs: each operation, what is refused, and that it takes effect."""

import asyncio
import logging
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

LOGGER_OF_TEST = logging.getLogger(__name__)
TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]


def resource(resource_type: int, name: str, *changes: Change) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            AlterableConfig(name=setting, config_operation=operation, value=value)
            for setting, operation, value in changes
        ],
    )


async def alter(
    broker: HandlerBroker,
    *resources: AlterConfigsResource,
    validate_only: bool = False,
    version: int = 1,
) -> list[int]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    answer = await broker.ask(request, IncrementalAlterConfigsResponse, version=version)
    named = [(each.resource_type, each.resource_name) for each in answer.responses]
    assert named == [(each.resource_type, each.resource_name) for each in resources]
    assert all(bool(each.error_message) == bool(each.error_code) for each in answer.responses)
    return [each.error_code for each in answer.responses]


@pytest.mark.parametrize("version", [0, 1])
def test_a_topic_is_changed_and_its_logs_follow(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"segment.ms": "77"})
        log = broker.context.partitions.get("orders", 0).log

        async def change(*changes: Change) -> None:
            codes = await alter(broker, resource(TOPIC, "orders", *changes), version=version)
            assert codes == [0]

        await change(("retention.ms", SET, "1000"), ("cleanup.policy", APPEND, "compact"))
        assert (log.config.retention_ms, log.config.segment_ms) == (1000, 77)
        assert log.config.cleanup_policy == {"compact", "delete"}
        await change(("cleanup.policy", SUBTRACT, "delete"), ("segment.ms", DELETE, None))
        assert log.config.cleanup_policy == {"compact"}
        assert log.config.segment_ms == 604_800_000
        assert broker.context.image.topic_configs("orders") == {
            "retention.ms": "1000",
            "cleanup.policy": "compact",
        }
        await change(("cleanup.policy", SUBTRACT, "compact"))
        assert log.config.cleanup_policy == frozenset()
        await change()

    run_with_broker(tmp_path, scenario)


def test_brokers_are_changed_one_or_all(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        settings = broker.context.settings
        log = broker.context.partitions.get("orders", 0).log
        assert await alter(broker, resource(BROKER, "", ("log.roll.ms", SET, "5000"))) == [0]
        assert log.config.segment_ms == 5000
        assert await alter(broker, resource(BROKER, "0", ("log.roll.ms", SET, "6000"))) == [0]
        assert (settings.value("log.roll.ms"), log.config.segment_ms) == (6000, 6000)
        assert await alter(broker, resource(BROKER, "0", ("log.roll.ms", DELETE, None))) == [0]
        assert log.config.segment_ms == 5000
        change = ("log.cleanup.policy", APPEND, "compact")
        assert await alter(broker, resource(BROKER, "0", change)) == [0]
        assert log.config.cleanup_policy == {"compact", "delete"}

    run_with_broker(tmp_path, scenario)


def test_changes_survive_a_restart(tmp_path: Path) -> None:
    async def change(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        codes = await alter(
            broker,
            resource(TOPIC, "orders", ("retention.ms", SET, "1000")),
            resource(BROKER, "", ("max.connections", SET, "99")),
        )
        assert codes == [0, 0]

    async def look(broker: HandlerBroker) -> None:
        assert broker.context.settings.integer("max.connections") == 99
        assert broker.context.partitions.get("orders", 0).log.config.retention_ms == 1000

    run_with_broker(tmp_path, change)
    run_with_broker(tmp_path, look)


def test_each_resource_is_changed_or_not_on_its_own(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        codes = await alter(
            broker,
            resource(TOPIC, "orders", ("retention.ms", SET, "777")),
            resource(TOPIC, "nope", ("retention.ms", SET, "6")),
            resource(TOPIC, "bad/name", ("retention.ms", SET, "6")),
            resource(BROKER, "0", ("max.connections", SET, "9"), ("log.dirs", SET, "/x")),
            resource(99, "x", ("a", SET, "b")),
        )
        assert codes == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
        ]
        assert broker.context.image.topic_configs("orders") == {"retention.ms": "777"}
        assert broker.context.image.broker_configs(0) == {}

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("resource_type", "name", "changes", "code"),
    [
        (TOPIC, "orders", [("retention.ms", SET, "abc")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", [("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", [("x" * 32_767, SET, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("remote.storage.enable", SET, "true")], ErrorCode.INVALID_CONFIG),
        (
            TOPIC,
            "orders",
            [("retention.ms", SET, "5"), ("retention.ms", SET, "6")],
            ErrorCode.INVALID_REQUEST,
        ),
        (BROKER, "0", [("num.io.threads", SET, "x")], ErrorCode.INVALID_REQUEST),
        (BROKER, "", [("num.io.threads", SET, "400")], ErrorCode.INVALID_REQUEST),
        (BROKER, "0", [("nonsense", SET, "4")], ErrorCode.INVALID_CONFIG),
        (BROKER, "7", [("num.io.threads", SET, "3")], ErrorCode.INVALID_REQUEST),
        (LOGGER, "0", [("root", APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        (LOGGER, "0", [("root", SET, None)], ErrorCode.INVALID_REQUEST),
        (LOGGER, "0", [("root", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (LOGGER, "0", [("no.such", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        (LOGGER, "", [("root", SET, "INFO")], ErrorCode.INVALID_REQUEST),
        (
            LOGGER,
            "0",
            [("root", SET, "INFO"), ("root", SET, "INFO")],
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, resource_type: int, name: str, changes: list[Change], code: ErrorCode
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        for validate_only in (True, False):
            wanted = resource(resource_type, name, *changes)
            assert await alter(broker, wanted, validate_only=validate_only, version=0) == [code]
        assert broker.context.image.topic_configs("orders") == {}
        assert broker.context.metrics.errors == {(44, code): 2}

    run_with_broker(tmp_path, scenario)


def test_a_resource_named_twice_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.create_topic("others")
        first = resource(TOPIC, "orders", ("retention.ms", SET, "5"))
        second = resource(TOPIC, "orders", ("segment.ms", SET, "6"))
        other = resource(TOPIC, "others", ("segment.ms", SET, "6"))
        codes = await alter(broker, first, other, second)
        assert codes == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
        assert broker.context.image.topic_configs("orders") == {}

    run_with_broker(tmp_path, scenario)


def test_validation_changes_nothing(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        codes = await alter(
            broker,
            resource(TOPIC, "orders", ("retention.ms", SET, "888")),
            resource(BROKER, "", ("max.connections", SET, "9")),
            resource(LOGGER, "0", (__name__, SET, "FATAL")),
            validate_only=True,
        )
        assert codes == [0, 0, 0]
        assert broker.context.image.topic_configs("orders") == {}
        assert broker.context.image.broker_configs(None) == {}

    run_with_broker(tmp_path, scenario)
    assert LOGGER_OF_TEST.level == logging.NOTSET


def test_levels_of_loggers(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        assert await alter(broker, resource(LOGGER, "0", (__name__, SET, "FATAL"))) == [0]
        assert LOGGER_OF_TEST.level == logging.CRITICAL
        assert await alter(broker, resource(LOGGER, "0", (__name__, DELETE, None))) == [0]

    run_with_broker(tmp_path, scenario)
    assert LOGGER_OF_TEST.level == logging.NOTSET


def test_changes_at_the_same_time_do_not_undo_each_other(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        names = ["retention.ms", "segment.ms", "flush.ms", "delete.retention.ms", "retention.bytes"]
        codes = await asyncio.gather(
            *(alter(broker, resource(TOPIC, "orders", (name, SET, "5"))) for name in names)
        )
        assert codes == [[0]] * len(names)
        assert broker.context.image.topic_configs("orders") == dict.fromkeys(names, "5")

    run_with_broker(tmp_path, scenario)
