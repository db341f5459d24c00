"""Settings of groups and of clients' metrics: altered, described, listed, kept and removed."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.settings.config_changes import Operation
from headwater.wire.messages.alter_configs import (
    AlterableConfig as ReplacedConfig,
)
from headwater.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from headwater.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headwater.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

CLIENT_METRICS, GROUP = 16, 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
#: Where a value comes from.
DEFAULT, OF_CLIENT_METRICS, OF_GROUP = 5, 7, 8


class Found(NamedTuple):
    value: str | None
    source: int
    synonyms: list[tuple[str, int]]


async def alter(
    broker: HandlerBroker,
    kind: int,
    name: str,
    *changes: tuple[str, str | None] | tuple[str, str | None, int],
    validate_only: bool = False,
) -> int:
    configs = [
        AlterableConfig(name=setting, value=value, config_operation=rest[0] if rest else 0)
        for setting, value, *rest in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    answer = await broker.ask(request, IncrementalAlterConfigsResponse)
    [result] = answer.responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert bool(result.error_code) == bool(result.error_message)
    return result.error_code


async def replace(broker: HandlerBroker, kind: int, name: str, configs: Mapping[str, str]) -> int:
    entries = [ReplacedConfig(name=setting, value=value) for setting, value in configs.items()]
    resource = ReplacedResource(resource_type=kind, resource_name=name, configs=entries)
    answer = await broker.ask(AlterConfigsRequest(resources=[resource]), AlterConfigsResponse)
    return answer.responses[0].error_code


async def described(broker: HandlerBroker, kind: int, name: str) -> dict[str, Found]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = await broker.ask(request, DescribeConfigsResponse)
    [result] = answer.results
    assert (result.error_code, result.resource_name) == (0, name)
    assert not any(entry.read_only for entry in result.configs)
    return {
        entry.name: Found(
            entry.value,
            entry.config_source,
            [(synonym.name, synonym.source) for synonym in entry.synonyms],
        )
        for entry in result.configs
    }


async def listed(broker: HandlerBroker, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    answer = await broker.ask(request, ListConfigResourcesResponse, version=version)
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_a_groups_settings_over_those_of_brokers(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        heartbeat = Found("5000", DEFAULT, [("group.consumer.heartbeat.interval.ms", DEFAULT)])
        inherited = [("group.consumer.session.timeout.ms", DEFAULT)]
        assert await described(broker, GROUP, "billing") == {
            HEARTBEAT: heartbeat,
            SESSION: Found("45000", DEFAULT, inherited),
        }
        assert await alter(broker, GROUP, "billing", (SESSION, "50000")) == 0
        assert await described(broker, GROUP, "billing") == {
            HEARTBEAT: heartbeat,
            SESSION: Found("50000", OF_GROUP, [(SESSION, OF_GROUP), *inherited]),
        }
        assert await replace(broker, GROUP, "billing", {HEARTBEAT: "6000"}) == 0
        found = await described(broker, GROUP, "billing")
        assert (found[SESSION].value, found[HEARTBEAT].value) == ("45000", "6000")
        assert broker.context.settings.group_integer("billing", HEARTBEAT) == 6000

    run_with_broker(tmp_path, scenario)


def test_settings_of_brokers_show_among_a_groups_synonyms(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        found = await described(broker, GROUP, "billing")
        static = 4
        synonym = "group.consumer.session.timeout.ms"
        assert found[SESSION] == ("47000", static, [(synonym, static), (synonym, DEFAULT)])

    run_with_broker(tmp_path, scenario, {"group.consumer.session.timeout.ms": "47000"})


@pytest.mark.parametrize(
    ("kind", "name", "setting", "value", "operation", "code"),
    [
        (GROUP, "g", SESSION, "44999", Operation.SET, ErrorCode.INVALID_CONFIG),
        (GROUP, "g", SESSION, "60001", Operation.SET, ErrorCode.INVALID_CONFIG),
        (GROUP, "g", SESSION, "soon", Operation.SET, ErrorCode.INVALID_CONFIG),
        (GROUP, "g", "no.such", "1", Operation.SET, ErrorCode.INVALID_CONFIG),
        (GROUP, "g", SESSION, "1", Operation.APPEND, ErrorCode.INVALID_CONFIG),
        (GROUP, "g", SESSION, None, Operation.SET, ErrorCode.INVALID_REQUEST),
        (GROUP, "", SESSION, "50000", Operation.SET, ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", "interval.ms", "99", Operation.SET, ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", "interval.ms", "x", Operation.SET, ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "m", "no.such", "1", Operation.SET, ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", "match", "nope=1", Operation.SET, ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "", "interval.ms", "1000", Operation.SET, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(
    tmp_path: Path,
    kind: int,
    name: str,
    setting: str,
    value: str | None,
    operation: int,
    code: ErrorCode,
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        assert await alter(broker, kind, name, (setting, value, operation)) == code
        assert await listed(broker, kind) == []

    run_with_broker(tmp_path, scenario)


def test_what_has_no_name_is_not_described(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        resources = [
            DescribeConfigsResource(resource_type=kind, resource_name="")
            for kind in (GROUP, CLIENT_METRICS)
        ]
        request = DescribeConfigsRequest(resources=resources)
        answer = await broker.ask(request, DescribeConfigsResponse)
        codes = [result.error_code for result in answer.results]
        assert codes == [ErrorCode.INVALID_REQUEST] * 2

    run_with_broker(tmp_path, scenario)


def test_a_subscription_to_metrics(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        assert await described(broker, CLIENT_METRICS, "m") == {
            "interval.ms": ("300000", DEFAULT, []),
            "match": ("", DEFAULT, []),
            "metrics": ("", DEFAULT, []),
        }
        changes = (("interval.ms", "1000"), ("match", " client_id=a , client_source_port=1"))
        assert await alter(broker, CLIENT_METRICS, "m", *changes) == 0
        assert await described(broker, CLIENT_METRICS, "m") == {
            "interval.ms": ("1000", OF_CLIENT_METRICS, [("interval.ms", OF_CLIENT_METRICS)]),
            "match": (
                "client_id=a,client_source_port=1",
                OF_CLIENT_METRICS,
                [("match", OF_CLIENT_METRICS)],
            ),
            "metrics": ("", DEFAULT, []),
        }
        # The first version has no types: it is about these alone.
        assert await listed(broker, version=0) == [(CLIENT_METRICS, "m")]
        gone = [(name, None, Operation.DELETE) for name in ("interval.ms", "match", "metrics")]
        assert await alter(broker, CLIENT_METRICS, "m", *gone) == 0
        assert await listed(broker, CLIENT_METRICS) == []

    run_with_broker(tmp_path, scenario)


#: All that a group may be called, as far as paths could mind.
NAMES = ["billing", "a b/c", "<default>", ".", "..", "%2E", "Größe", "x" * 300, "\0"]


def test_settings_outlive_the_broker(tmp_path: Path) -> None:
    async def first(broker: HandlerBroker) -> None:
        for name in NAMES:
            assert await alter(broker, GROUP, name, (SESSION, "50000")) == 0
        assert await alter(broker, CLIENT_METRICS, "a/b", ("metrics", "*")) == 0
        assert await alter(broker, GROUP, "dry", (SESSION, "50000"), validate_only=True) == 0

    async def second(broker: HandlerBroker) -> None:
        assert await listed(broker, GROUP) == [(GROUP, name) for name in sorted(NAMES)]
        assert await listed(broker, CLIENT_METRICS) == [(CLIENT_METRICS, "a/b")]
        for name in NAMES:
            assert broker.context.settings.group_integer(name, SESSION) == 50_000
            # Who has nothing of its own is not kept.
            assert await alter(broker, GROUP, name, (SESSION, None, Operation.DELETE)) == 0
        assert await listed(broker, GROUP) == []
        assert await alter(broker, GROUP, "billing", (SESSION, "51000")) == 0

    async def third(broker: HandlerBroker) -> None:
        assert await listed(broker, GROUP) == [(GROUP, "billing")]
        assert broker.context.settings.group_integer("billing", SESSION) == 51_000

    for scenario in (first, second, third):
        run_with_broker(tmp_path, scenario)
