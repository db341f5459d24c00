"""A scripted cluster whose brokers coordinate what a test says, and a hasty connection to it."""

import random

from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.retry import RetryPolicy
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.support.fakes.peers.brokers import Call, FakeBrokers

COORDINATOR_NOT_AVAILABLE = 15
_BATCHED_SINCE = 4


def connection_to(cluster: FakeBrokers, timeout_s: float = 10.0) -> ClusterConnection:
    return ClusterConnection(
        cluster.bootstrap,
        timeout_s=timeout_s,
        policy=RetryPolicy(backoff_ms=1, backoff_max_ms=5),
        generator=random.Random(1),
    )


def place_coordinators(cluster: FakeBrokers, owners: dict[str, int]) -> None:
    """Let the cluster say who coordinates what, now and as `owners` change; -1 for nobody yet."""

    def find(call: Call) -> FindCoordinatorResponse:
        if call.version < _BATCHED_SINCE:
            owner = owners[call.request.key]
            return FindCoordinatorResponse(node_id=owner, error_code=_code(owner))
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=owners[key],
                    error_code=_code(owners[key]),
                    error_message=None,
                )
                for key in call.request.coordinator_keys
            ]
        )

    cluster.script(ApiKey.FIND_COORDINATOR, find)


def _code(owner: int) -> int:
    return COORDINATOR_NOT_AVAILABLE if owner < 0 else 0
