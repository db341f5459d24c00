"""Requests that only a coordinator can answer, about groups or transactional ids of any number.

Each attempt looks up the coordinators of all that is still open in one request, asks all of them at
once, and puts the answers together. What a coordinator says of itself (not mine, not ready) passes
with time, and is asked again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from headwater.base.errors import KafkaError
from headwater.client.admin.outcomes import Outcomes, settle
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.coordinators import CoordinatorKind, find_coordinators
from headwater.client.errors import UnknownBrokerError
from headwater.client.given_items import given_names
from headwater.client.kafka_errors import CoordinatorNotAvailableError

Value = TypeVar("Value")
AskCoordinator = Callable[[int, list[str]], Awaitable[Outcomes[str, Value]]]


async def ask_coordinators(
    connection: ClusterConnection,
    kind: CoordinatorKind,
    keys: Collection[str],
    ask_coordinator: AskCoordinator[Value],
    what: str,
    *,
    timeout_s: float | None = None,
) -> Outcomes[str, Value]:
    """`ask_coordinator` for each coordinator of `keys` with those that it coordinates."""

    async def attempt(pending: list[str]) -> Outcomes[str, Value]:
        outcomes: Outcomes[str, Value] = {}
        by_coordinator: dict[int, list[str]] = {}
        for key, found in (await find_coordinators(connection, kind, pending)).items():
            if isinstance(found, KafkaError):
                outcomes[key] = found
            else:
                by_coordinator.setdefault(found, []).append(key)
        for answered in await asyncio.gather(
            *(
                _ask(ask_coordinator, broker_id, owned)
                for broker_id, owned in by_coordinator.items()
            )
        ):
            outcomes.update(answered)
        return outcomes

    return await settle(connection, given_names(keys), attempt, what, timeout_s=timeout_s)


async def _ask(
    ask_coordinator: AskCoordinator[Value], broker_id: int, keys: list[str]
) -> Outcomes[str, Value]:
    try:
        return await ask_coordinator(broker_id, keys)
    except UnknownBrokerError as error:
        # It has just left, so another one will coordinate.
        gone = CoordinatorNotAvailableError(str(error))
        return dict.fromkeys(keys, gone)
    except KafkaError as error:
        return dict.fromkeys(keys, error)
