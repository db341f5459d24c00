"""UnregisterBroker: any broker takes it, and all of them forget."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.client.admin import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
)
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.kafka_errors import BrokerIdNotRegisteredError, InvalidRequestError
from headwater.cluster.brokers.unregistration import config_resource
from headwater.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

_SETTING = "num.replica.fetchers"


def test_a_broker_that_lives_or_was_never_there(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for broker_id, code in (
            (0, ErrorCode.INVALID_REQUEST),
            (7, ErrorCode.BROKER_ID_NOT_REGISTERED),
            (-1, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ):
            answer = await broker.ask(
                UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse
            )
            assert answer.error_code == code
            assert f"Broker {broker_id} is" in (answer.error_message or "")

    run_with_broker(tmp_path, scenario)


def test_a_broker_that_was_stopped_for_good_is_forgotten(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            resource = ConfigResource(ResourceType.BROKER, "3")
            changes = [ConfigChange(_SETTING, "2", ConfigOperation.SET)]
            await admin.alter_configs({resource: changes})
            with pytest.raises(InvalidRequestError, match="Broker 3 is alive"):
                await admin.unregister_broker(3)
            await cluster.stop(3)
            await cluster.until(lambda: 3 not in cluster.image.brokers)
        other = next(each for each in cluster.servers if each != cluster.controller_id)
        answers = await asyncio.gather(
            *(cluster.send(other, UnregisterBrokerRequest(broker_id=3)) for _ in range(2))
        )
        # One of them was first.
        assert sorted(each.error_code for each in answers) == [
            0,
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ]
        for server in cluster.servers.values():
            assert config_resource(3) not in server.context.image.configs
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            with pytest.raises(BrokerIdNotRegisteredError):
                await admin.unregister_broker(3)
        # Its id is free again.
        await cluster.start(3)

    run_cluster_scenario(tmp_path, scenario)
