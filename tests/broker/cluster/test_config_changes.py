"""Settings in a cluster: checked by the broker that is asked, written by the controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.settings.config_changes import Operation
from headwater.broker.topics.config_alteration import ResourceType
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.wire.cluster_messages.set_configs import ConfigEntry, SetConfigsRequest
from headwater.wire.messages.alter_configs import (
    AlterableConfig as ReplacedConfig,
)
from headwater.wire.messages.alter_configs import (
    AlterConfigsRequest,
)
from headwater.wire.messages.alter_configs import (
    AlterConfigsResource as ReplacedResource,
)
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario


async def alter(
    cluster: BrokerCluster,
    at: int,
    kind: int,
    name: str,
    setting: str,
    value: str,
    operation: int = Operation.SET,
) -> int:
    config = AlterableConfig(name=setting, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    response = await cluster.send(at, IncrementalAlterConfigsRequest(resources=[resource]))
    code: int = response.responses[0].error_code
    return code


async def described(
    cluster: BrokerCluster, at: int, kind: int, name: str, setting: str
) -> str | None:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[setting]
    )
    response = await cluster.send(at, DescribeConfigsRequest(resources=[resource]))
    (result,) = response.results
    assert result.error_code == 0, result.error_message
    value: str | None = result.configs[0].value
    return value


def test_a_topics_settings_are_changed_at_any_broker_and_hold_at_all(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        for broker_id in cluster.broker_ids:
            value = str(1000 + broker_id)
            code = await alter(
                cluster, broker_id, ResourceType.TOPIC, "orders", "retention.ms", value
            )
            assert code == 0
            found = [
                await described(cluster, each, ResourceType.TOPIC, "orders", "retention.ms")
                for each in cluster.broker_ids
            ]
            assert found == [value] * 3
            for each in cluster.broker_ids:
                log = cluster.context(each).partitions.get("orders", 0).log
                assert log.config.retention_ms == 1000 + broker_id

    run_cluster_scenario(tmp_path, scenario)


def test_brokers_that_change_a_topic_at_once_do_not_undo_each_other(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        settings = ["retention.ms", "segment.ms", "flush.ms", "max.message.bytes", "segment.bytes"]
        changes = [
            alter(cluster, 1 + number % 3, ResourceType.TOPIC, "orders", setting, "1048576")
            for number, setting in enumerate(settings)
        ]
        assert await asyncio.gather(*changes) == [0] * len(settings)
        assert dict(cluster.image.topic_configs("orders")) == dict.fromkeys(settings, "1048576")

    run_cluster_scenario(tmp_path, scenario)


def test_a_groups_settings_hold_at_all_brokers_and_under_the_next_controller(
    tmp_path: Path,
) -> None:
    setting = "consumer.session.timeout.ms"

    async def scenario(cluster: BrokerCluster) -> None:
        async def found() -> list[int]:
            return [
                cluster.context(each).settings.group_integer("billing", setting)
                for each in cluster.broker_ids
            ]

        for broker_id in cluster.broker_ids:
            value = str(50_000 + broker_id)
            group = ResourceType.GROUP, "billing"
            assert await alter(cluster, broker_id, *group, setting, value) == 0
            assert await found() == [int(value)] * 3
            assert await described(cluster, broker_id, *group, setting) == value
        refused = await alter(cluster, 1, ResourceType.GROUP, "billing", setting, "1")
        assert refused == ErrorCode.INVALID_CONFIG
        old = cluster.controller_id
        await cluster.stop(old)
        await cluster.until(lambda: cluster.controller_id != old)
        await cluster.start(old)
        assert await found() == [50_003] * 3
        code = await alter(
            cluster, old, ResourceType.GROUP, "billing", setting, "", Operation.DELETE
        )
        assert code == 0
        await cluster.until(lambda: not cluster.image.configs)
        assert await found() == [45_000] * 3

    run_cluster_scenario(tmp_path, scenario)


def test_a_broker_is_asked_for_its_own_settings(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        for broker_id in cluster.broker_ids:
            value = str(100 + broker_id)
            name, setting = str(broker_id), "num.io.threads"
            # No broker can say whether another one can have a value.
            (other, *_) = cluster.others(broker_id)
            code = await alter(cluster, other, ResourceType.BROKER, name, setting, value)
            assert code == ErrorCode.INVALID_REQUEST
            code = await alter(cluster, broker_id, ResourceType.BROKER, name, setting, "16")
            assert code == 0
            found = await described(cluster, broker_id, ResourceType.BROKER, name, setting)
            assert found == "16"
            assert cluster.context(broker_id).settings.integer(setting) == 16
            code = await alter(cluster, broker_id, ResourceType.BROKER, name, setting, "many")
            assert code == ErrorCode.INVALID_REQUEST
        # What is set for all holds for all but those who have their own.
        wide = await alter(cluster, 2, ResourceType.BROKER, "", "background.threads", "12")
        assert wide == 0
        threads = [
            cluster.context(each).settings.integer("background.threads")
            for each in cluster.broker_ids
        ]
        assert threads == [12] * 3

    run_cluster_scenario(tmp_path, scenario)


def test_all_settings_of_a_topic_are_replaced_at_any_broker(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]], {"retention.ms": "1"})
        (other, *_) = cluster.others(cluster.controller_id)
        resource = ReplacedResource(
            resource_type=ResourceType.TOPIC,
            resource_name="orders",
            configs=[ReplacedConfig(name="segment.ms", value="9")],
        )
        response = await cluster.send(other, AlterConfigsRequest(resources=[resource]))
        assert response.responses[0].error_code == 0
        assert dict(cluster.image.topic_configs("orders")) == {"segment.ms": "9"}

    run_cluster_scenario(tmp_path, scenario)


def test_the_controller_writes_what_was_made_from_the_present_settings(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])

        (other, *_) = cluster.others(cluster.controller_id)
        channel = await cluster.connect_as(other, cluster.controller_id)

        async def write(
            version: int, value: str = "5", kind: int = ResourceKind.TOPIC, name: str = "orders"
        ) -> int:
            request = SetConfigsRequest(
                kind=kind,
                resource_name=name,
                version=version,
                entries=[ConfigEntry(name="retention.ms", value=value)],
            )
            response = await channel.send(request, timeout_s=30)
            code: int = response.error_code
            return code

        resource = ConfigResource(ResourceKind.TOPIC, "orders")
        version = cluster.image.config(resource).version
        assert await write(version) == 0
        assert await write(version) == ErrorCode.INVALID_UPDATE_VERSION
        assert await write(version + 1, "no number") == ErrorCode.INVALID_CONFIG
        assert await write(-1, name="gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await write(-1, kind=3) == ErrorCode.INVALID_REQUEST
        assert await write(-1, kind=ResourceKind.BROKER, name="x") == ErrorCode.INVALID_REQUEST
        await channel.close()
        channel = await cluster.connect_as(cluster.controller_id, other)
        response = await channel.send(SetConfigsRequest(kind=ResourceKind.BROKER), timeout_s=30)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        await channel.close()

    run_cluster_scenario(tmp_path, scenario)
