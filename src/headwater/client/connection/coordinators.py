"""Which broker coordinates a group or a transactional id, as the cluster says at the moment.

A coordinator moves whenever the leader of its partition does, so nobody should keep an answer for
long: who hears NOT_COORDINATOR asks again. The very first question may make the cluster create its
internal topic, and is answered with COORDINATOR_NOT_AVAILABLE until that is there. Both errors, and
COORDINATOR_LOAD_IN_PROGRESS, are retriable: `find_coordinators` is one attempt, for callers that
repeat what may pass.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from headwater.base.errors import KafkaError
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import refusal
from headwater.client.kafka_errors import CoordinatorNotAvailableError
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHED_SINCE: Final = 4


class CoordinatorKind(IntEnum):
    """What is coordinated, by its number in the protocol."""

    GROUP = 0
    TRANSACTION = 1

    def subject(self, key: str) -> str:
        """What an error is about."""
        return f"{'Group' if self is CoordinatorKind.GROUP else 'Transactional id'} {key!r}"


async def find_coordinators(
    connection: ClusterConnection,
    kind: CoordinatorKind,
    keys: Sequence[str],
    broker_id: int | None = None,
) -> dict[str, int | KafkaError]:
    """The id of the broker that coordinates each key, or why there is none; one attempt.

    `broker_id` is who is asked, any broker if None.
    """
    channel = await connection.channel(broker_id)
    versions = channel.versions.get(ApiKey.FIND_COORDINATOR)
    if versions is not None and versions.highest < _BATCHED_SINCE:
        return {key: await _find_one(connection, kind, key, broker_id) for key in keys}
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
    response = await connection.ask(request, FindCoordinatorResponse, broker_id)
    return {
        found.key: _outcome(
            connection, kind, found.key, found.node_id, found.error_code, found.error_message
        )
        for found in response.coordinators
    }


async def _find_one(
    connection: ClusterConnection, kind: CoordinatorKind, key: str, broker_id: int | None
) -> int | KafkaError:
    request = FindCoordinatorRequest(key=key, key_type=kind)
    found = await connection.ask(request, FindCoordinatorResponse, broker_id)
    return _outcome(connection, kind, key, found.node_id, found.error_code, found.error_message)


def _outcome(
    connection: ClusterConnection,
    kind: CoordinatorKind,
    key: str,
    node_id: int,
    error_code: int,
    error_message: str | None,
) -> int | KafkaError:
    if error_code:
        return refusal(error_code, error_message, kind.subject(key))
    if node_id not in connection.metadata.brokers:
        # It has joined since the metadata were asked for, which happens again before a retry.
        return CoordinatorNotAvailableError(
            f"{kind.subject(key)} is coordinated by broker {node_id}, whose address is not known."
        )
    return node_id
