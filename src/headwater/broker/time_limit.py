"""The time limit of a request for a change of the cluster: who asked stops waiting, the change does
not stop.

The controller carries out each change as a task of its own, to its end. So when the time is over
the client hears REQUEST_TIMED_OUT, and may find later that it was done.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError

T = TypeVar("T")


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
