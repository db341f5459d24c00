"""What one request for a change of the cluster may ask for: so many changes, and so much time.

The controller carries out each change as a task of its own, to its end. So when the time of a
request is over the client hears REQUEST_TIMED_OUT, and may find later that it was done.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from headwater.base.errors import ErrorCode, KafkaError

T = TypeVar("T")

#: As many as Kafka's controller takes in one go; nobody else gets to change anything meanwhile.
CHANGE_COUNT_MAX: Final = 10_000


def check_change_count(count: int) -> None:
    """Raise POLICY_VIOLATION if one request would change too much."""
    if count > CHANGE_COUNT_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"One request may change {CHANGE_COUNT_MAX} topics, and this one names {count}.",
        )


async def within(timeout_ms: int, change: Awaitable[T]) -> T:
    """What comes of a change; `KafkaError` REQUEST_TIMED_OUT if that takes too long."""
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            return await change
    except TimeoutError:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"It was not done within {max(timeout_ms, 0)} ms, but goes on.",
        ) from None
