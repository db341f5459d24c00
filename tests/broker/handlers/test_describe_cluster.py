"""DescribeCluster: the brokers and the id of the cluster."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tests.support.brokers.handler_broker import ADVERTISED, HandlerBroker, run_with_broker


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_described(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = await broker.ask(request, DescribeClusterResponse, version=version)
        assert answer.error_code == ErrorCode.NONE
        assert answer.cluster_id == broker.context.cluster_id
        assert answer.controller_id == 0
        assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
            (0, *ADVERTISED)
        ]
        assert [(each.rack, each.is_fenced) for each in answer.brokers] == [("r1", False)]
        assert answer.cluster_authorized_operations == 8096

    run_with_broker(tmp_path, scenario, {"broker.rack": "r1"})


def test_operations_are_told_only_to_those_who_ask(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await broker.ask(DescribeClusterRequest(), DescribeClusterResponse)
        assert answer.cluster_authorized_operations == -(2**31)

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_brokers_can_be_described(tmp_path: Path, endpoint_type: int, code: ErrorCode) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        answer = await broker.ask(request, DescribeClusterResponse)
        assert answer.error_code == code
        assert answer.error_message
        assert (answer.cluster_id, answer.controller_id, answer.brokers) == ("", -1, [])

    run_with_broker(tmp_path, scenario)
