"""How a simulated client looks for the coordinator of a group or a transactional id."""

from __future__ import annotations

from headwater.base.errors import ErrorCode
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.histories.history import PropertyViolated
from headwater.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHED_SINCE = 4


async def find_coordinator(link: BrokerLink, kind: CoordinatorKind, key: str) -> None:
    """Ask until there is one; in a world with one broker, it must be that one."""
    version = link.random.choice((6, 4, 3, 1))
    request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
    answer = await link.insist(
        request, FindCoordinatorResponse, lambda answer: [_error(answer)], version=version
    )
    found = answer.coordinators[0] if version >= _BATCHED_SINCE else answer
    error = ErrorCode.from_wire(_error(answer))
    if error is not ErrorCode.NONE or (found.host, found.port) != link.address:
        raise PropertyViolated(
            f"the broker coordinates {key}, and not {found.host}:{found.port}, {error.name}"
        )


def _error(answer: FindCoordinatorResponse) -> int:
    return answer.coordinators[0].error_code if answer.coordinators else answer.error_code
