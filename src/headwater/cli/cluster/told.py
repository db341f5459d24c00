"""Questions to a cluster that may be in trouble: an answer in time, or none.

Whoever looks at a cluster wants to see what there is to see, most of all when something is down. So
a broker that does not answer costs a few seconds and leaves a dash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from headwater.base.errors import KafkaError
from headwater.client.admin import BrokerOperations, LogDirectory
from headwater.client.connection.cluster_connection import ClusterConnection

ANSWER_S: Final = 4.0

T = TypeVar("T")


async def told(question: Awaitable[T], limit_s: float = ANSWER_S) -> T | None:
    """The answer, or None if the cluster refuses it, or takes too long."""
    try:
        async with asyncio.timeout(limit_s):
            return await question
    except (KafkaError, TimeoutError):
        return None


async def log_directories(
    connection: ClusterConnection, broker_id: int
) -> list[LogDirectory] | None:
    """Those of a broker, or None if it does not tell."""
    found = await told(BrokerOperations(connection).describe_log_dirs([broker_id]))
    outcome = None if found is None else found.get(broker_id)
    return None if isinstance(outcome, KafkaError) else outcome
